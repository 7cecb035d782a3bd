-- What was paid for models that tools asked is found without looking at every fact.
CREATE INDEX facts_of_models ON facts (turn) WHERE instr(body, '"model_asked"') > 0 AND seq > 1;
