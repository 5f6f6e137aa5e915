-- Bytes that requests with an Idempotency-Key have stored, per owner and hour; of all owners together in the rows without an owner. Processes add what they
-- have stored every few seconds.
create table idempotency_use (
  owner text not null,
  hour timestamptz not null,
  bytes bigint not null,
  primary key (owner, hour)
);
create index idempotency_use_by_hour on idempotency_use (hour);
