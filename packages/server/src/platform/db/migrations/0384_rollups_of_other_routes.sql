-- A rollup of the payments of all routes that have no row of their own in its period. Its route is null, as is that of payments without a known one.
alter table payment_rollups add column if not exists other_routes boolean not null default false;
