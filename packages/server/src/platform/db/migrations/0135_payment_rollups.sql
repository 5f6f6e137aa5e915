-- Payments counted per quarter of an hour and per day, so that summaries and statistics do not read each payment. A quarter is final, except for
-- the changes below, once all transactions that could have changed it without a row there have ended.
create table payment_rollups (
  organisation_id text not null,
  environment text not null,
  -- Minutes: 15, or 1440 for a day of UTC.
  span smallint not null,
  at timestamptz not null,
  route text,
  protocol text not null,
  wallet_id text,
  api_key_id text not null,
  token text not null,
  decimals smallint not null,
  status text not null,
  failure_reason text,
  payments bigint not null,
  raw_amount numeric(78, 0) not null
);
create index payment_rollups_by_tenant on payment_rollups (organisation_id, environment, span, at);
create index payment_rollups_by_time on payment_rollups (at) where span = 15;

-- How many payments settled on a chain within how many milliseconds, rounded.
create table settlement_times (
  organisation_id text not null,
  environment text not null,
  at timestamptz not null,
  ms bigint not null,
  payments bigint not null
);
create index settlement_times_by_tenant on settlement_times (organisation_id, environment, at);

-- Quarters that payments changed in an hour or more after those payments were made. Appended by the transaction that changes a payment, so
-- that no writer waits for another; a loop counts such a quarter again and deletes its rows.
create table payment_rollup_changes (
  organisation_id text not null,
  environment text not null,
  at timestamptz not null
);
create index payment_rollup_changes_by_tenant on payment_rollup_changes (organisation_id, environment, at);

-- Quarters before `sealed_until` are counted. Those before `marked_until` can be counted when the transactions before `marked_xid` have ended.
create table payment_rollup_state (
  is_only boolean primary key default true check (is_only),
  sealed_until timestamptz not null default 'epoch',
  marked_until timestamptz not null default 'epoch',
  marked_xid xid8 not null default pg_current_xact_id()
);
insert into payment_rollup_state default values;

-- The least id of a kind made at that time.
create function first_id_at(prefix text, at timestamptz) returns text language sql immutable strict parallel safe as $$
  select prefix || '_' || string_agg(
    substr('0123456789abcdefghjkmnpqrstvwxyz', ((greatest(0, extract(epoch from at) * 1000)::bigint >> (5 * place)) & 31)::int + 1, 1),
    '' order by place desc)
  from generate_series(0, 9) as place $$;

create function settlement_ms(from_at timestamptz, to_at timestamptz) returns bigint language sql immutable strict parallel safe as $$
  select round(ms, case when ms < 100 then 0 when ms < 1000 then -1 when ms < 10000 then -2 when ms < 100000 then -3 else -4 end)::bigint
  from (select extract(epoch from to_at - from_at) * 1000 as ms) as exact $$;

create function note_payment_change() returns trigger language plpgsql as $$
begin
  insert into payment_rollup_changes (organisation_id, environment, at)
  values (new.organisation_id, new.environment, date_bin('15 minutes', new.created_at, 'epoch'));
  if tg_op = 'UPDATE' and old.created_at <> new.created_at then
    insert into payment_rollup_changes (organisation_id, environment, at)
    values (old.organisation_id, old.environment, date_bin('15 minutes', old.created_at, 'epoch'));
  end if;
  return null;
end $$;
-- The conditions keep both functions from the payments of the last hour, which no rollup contains.
create trigger note_late_payment after insert on payments for each row
  when (new.created_at < clock_timestamp() - interval '1 hour') execute function note_payment_change();
create trigger note_late_change after update of created_at, status, failure_reason, raw_amount, tx_hash, settled_at on payments for each row
  when (least(old.created_at, new.created_at) < clock_timestamp() - interval '1 hour') execute function note_payment_change();
