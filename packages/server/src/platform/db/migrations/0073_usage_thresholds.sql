-- Shares of a plan's quota that were reported, once for each calendar month (UTC) and limit.

create table usage_thresholds (
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  kind text not null,
  month text not null,
  percent integer not null,
  quota bigint not null,
  reached_at timestamptz not null,
  primary key (organisation_id, environment, kind, month, percent, quota)
);
