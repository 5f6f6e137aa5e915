-- What came before payments, by the minute: challenges that were issued, and credentials that were refused. Processes add to it every few seconds.
create table payment_attempts (
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  at timestamptz not null,
  challenges bigint not null,
  refused bigint not null,
  primary key (organisation_id, environment, at)
);
create index payment_attempts_by_age on payment_attempts (at);
