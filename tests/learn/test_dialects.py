"""org and reStructuredText."""

from geniuzfs.dates import days_since_1970
from geniuzfs.learn.paragraphs import split

ORG = """\
#+title: Journal

* TODO Bees <2023-05-08 Mon>                         :garden:
:PROPERTIES:
:ID: 17
:END:
The hive is strong.

** Tools
#+begin_src sh
ls

ls -l
#+end_src

- smoker
- veil

| a | b |
|---+---|
| 1 | 2 |
* Empty
"""

RST = """\
=====
Guide
=====

First steps
-----------

Run this::

    make

    make install

.. note:: Beware
   of dogs.

.. warning::

   The cat, too.

.. code-block:: python

   x = 1

   y = 2

More
----

- one
- two

=====  =====
a      b
=====  =====
1      2
=====  =====
"""


def test_an_org_file() -> None:
    found = split(ORG, "a.org")
    bees = "Bees <2023-05-08 Mon>"
    assert [(p.text, p.first_line, p.heading) for p in found] == [
        ("#+title: Journal", 1, ""),
        (":PROPERTIES:\n:ID: 17\n:END:", 4, bees),
        ("The hive is strong.", 7, bees),
        ("#+begin_src sh\nls\n\nls -l\n#+end_src", 10, f"{bees} > Tools"),
        ("- smoker\n- veil", 16, f"{bees} > Tools"),
        ("| a | b |\n|---+---|\n| 1 | 2 |", 19, f"{bees} > Tools"),
        ("* Empty", 22, ""),
    ]
    assert found[3].day == days_since_1970(2023, 5, 8)


def test_an_org_block_that_is_never_closed_takes_nothing() -> None:
    found = split("* A\n#+begin_src\nx\n\n* B\n\nwords\n", "a.org")
    assert [(p.text, p.heading) for p in found] == [("#+begin_src\nx", "A"), ("words", "B")]


def test_an_rst_file() -> None:
    found = split(RST, "a.rst")
    first = "Guide > First steps"
    assert [(p.text, p.first_line, p.heading) for p in found] == [
        ("Run this::", 8, first),
        ("    make\n\n    make install", 10, first),
        (".. note:: Beware\n   of dogs.", 14, first),
        (".. warning::\n\n   The cat, too.", 17, first),
        (".. code-block:: python\n\n   x = 1\n\n   y = 2", 21, first),
        ("- one\n- two", 30, "Guide > More"),
        (RST[RST.index("=====  =====") :].rstrip(), 33, "Guide > More"),
    ]


def test_rst_levels_follow_the_order_in_which_styles_appear() -> None:
    text = "A\n~~~\n\na\n\nB\n***\n\nb\n\nC\n~~~\n\nc\n"
    assert [p.heading for p in split(text, "a.rst")] == ["A", "A > B", "C"]
