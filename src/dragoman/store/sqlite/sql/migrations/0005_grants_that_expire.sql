-- What was allowed for an hour.
ALTER TABLE grants ADD COLUMN expires REAL;
