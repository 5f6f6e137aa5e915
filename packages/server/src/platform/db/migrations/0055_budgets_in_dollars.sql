-- Gas budgets in US dollars, and payments that give back what they never used.

-- What an organisation costs the operator per network and UTC day, in billionths of a US dollar: what is reserved and what was used.
create table gas_budgets (
  organisation_id text not null,
  environment text not null,
  network text not null,
  day date not null,
  nano_usd numeric(78, 0) not null,
  primary key (organisation_id, environment, network, day)
);
drop table settlement_budgets;

alter table payments
  -- Of the budget of the day of `created_at`: what its next attempt may cost, until the payment ends, and what its attempts have cost.
  add column gas_reserved_nano_usd numeric(78, 0) not null default 0,
  add column gas_used_nano_usd numeric(78, 0) not null default 0,
  -- When the chain is asked whether its money moved: a payment that nobody asked to settle, then one that time has voided.
  add column check_at timestamptz;
update payments set check_at = least(created_at + interval '1 hour', valid_before) where status = 'verified' and settlement is not null;
create index payments_to_check on payments (network, check_at) where check_at is not null;
-- A payer's open payments, over all organisations.
create index payments_open_by_payer on payments (payer, network, asset) where status in ('verified', 'settling');

-- From now on the month counts payments that were not lost.
update usage_counters set used = used - lost.payments
from (
  select organisation_id, environment, to_char(created_at at time zone 'UTC', 'YYYY-MM') as period, count(*) as payments
  from payments where status in ('voided', 'settlement_failed') group by 1, 2, 3
) as lost
where usage_counters.organisation_id = lost.organisation_id and usage_counters.environment = lost.environment
  and usage_counters.kind = 'payments' and usage_counters.period = lost.period;
