-- Public routes are listed by their places. A version from before sorts them.
create index concurrently if not exists registry_routes_by_place on registry_routes (environment, coalesce(listed_at, last_seen_at) desc, id desc)
  where is_public;
drop index concurrently if exists registry_routes_public;
