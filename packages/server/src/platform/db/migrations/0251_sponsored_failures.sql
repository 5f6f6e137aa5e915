-- When a sponsored transaction of a payer last failed in a block: the sponsor paid its fee, and pays none of that payer for a day.
create table sponsored_failures (
  network text not null,
  payer text not null,
  failed_at timestamptz not null,
  primary key (network, payer)
);
create index sponsored_failures_by_age on sponsored_failures (failed_at);
