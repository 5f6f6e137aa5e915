-- The oldest open payments of an organisation on a network, which give way to new ones. A name with `{payments}` stands for one of each partition.
create index if not exists payments_open_in_order on only payments (organisation_id, environment, network, created_at, id)
  where check_at is not null and has_place and status in ('verified', 'settling');
create index concurrently if not exists {payments}_open_in_order on {payments} (organisation_id, environment, network, created_at, id)
  where check_at is not null and has_place and status in ('verified', 'settling');
alter index payments_open_in_order attach partition {payments}_open_in_order;
