-- One MPP challenge buys once. A payer can sign the same transfer again and again, each time with another hash, so that the hash alone
-- does not tell copies of one payment apart.
create unique index payments_by_challenge on payments (challenge_id) where challenge_id is not null;
