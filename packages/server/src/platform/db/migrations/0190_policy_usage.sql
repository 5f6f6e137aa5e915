-- What left each managed wallet in each quarter of an hour, per token: a policy's cap of a month is not summed from each movement of a month. A trigger appends
-- what a transaction changes, so that no writer waits for another. A loop adds these rows to the sums and deletes them. A reader adds up both.
create table policy_usage (
  master_wallet_id text not null,
  token text not null,
  at timestamptz not null,
  organisation_id text not null,
  environment text not null,
  atto_amount numeric not null,
  primary key (master_wallet_id, token, at)
);
create table policy_usage_changes (
  master_wallet_id text not null,
  token text not null,
  at timestamptz not null,
  organisation_id text not null,
  environment text not null,
  atto_amount numeric not null
);
create index policy_usage_changes_by_wallet on policy_usage_changes (master_wallet_id, token, at);

create function note_policy_usage() returns trigger language plpgsql as $$
begin
  insert into policy_usage_changes (master_wallet_id, token, at, organisation_id, environment, atto_amount)
  select given.master_wallet_id, given.token, date_bin('15 minutes', given.reserved_at, 'epoch'), given.organisation_id, given.environment, sum(given.atto_amount)
  from (values
    (old.master_wallet_id, old.token, old.reserved_at, old.organisation_id, old.environment, case when old.released_at is null then -old.atto_amount end),
    (new.master_wallet_id, new.token, new.reserved_at, new.organisation_id, new.environment, case when new.released_at is null then new.atto_amount end)
  ) as given (master_wallet_id, token, reserved_at, organisation_id, environment, atto_amount)
  where given.atto_amount <> 0 group by 1, 2, 3, 4, 5 having sum(given.atto_amount) <> 0;
  return null;
end $$;
create trigger note_usage after insert or delete or update of token, master_wallet_id, atto_amount, reserved_at, released_at on policy_reservations
  for each row execute function note_policy_usage();
