-- A public route keeps its place in the list for an hour, also if it is made private and public again meanwhile.
alter table registry_routes add column if not exists listed_at timestamptz;
