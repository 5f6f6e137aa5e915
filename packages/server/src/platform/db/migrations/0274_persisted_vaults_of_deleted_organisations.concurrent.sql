-- By these the persisted vaults of organisations that were deleted a month ago are found.
create index concurrently if not exists organisations_by_deletion on organisations (deleted_at) where deleted_at is not null;
create index concurrently if not exists vaults_persisted on vaults (organisation_id, environment, id) where persisted_at is not null;
