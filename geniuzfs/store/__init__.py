"""The one place that speaks SQL: a folder's database and what is kept in it."""
