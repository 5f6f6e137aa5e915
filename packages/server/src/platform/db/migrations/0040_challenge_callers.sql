-- When each caller of a customer's was asked to pay in the last minute. Unlogged: a crash forgets it, which lets a caller ask anew.
create unlogged table challenge_callers (
  organisation_id text not null,
  environment text not null,
  ip inet not null,
  asked timestamptz[] not null,
  last_asked_at timestamptz not null,
  primary key (organisation_id, environment, ip)
);
create index challenge_callers_quiet on challenge_callers (last_asked_at);
