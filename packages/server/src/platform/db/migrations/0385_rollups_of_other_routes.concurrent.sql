-- The periods in which a route may have no row of its own.
create index concurrently if not exists payment_rollups_of_other_routes on payment_rollups (organisation_id, environment, span, at) where other_routes;
