-- What was paid for models that tools asked is found without looking at every fact.
CREATE INDEX facts_of_models ON facts (turn) WHERE position('"model_asked"' IN body) > 0 AND seq > 1;
