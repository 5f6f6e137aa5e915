-- Withdrawals are read by the source that their next step waits for, and there by organisation: `sourceOf` of the feature withdrawals.
create index concurrently if not exists withdrawals_due_by_source on withdrawals
  ((case when transfer_id is null then 'step ' || network else 'status ' || partner || ' ' || environment end), next_look_at)
  where next_look_at is not null;
create index concurrently if not exists withdrawals_due_by_organisation on withdrawals
  ((case when transfer_id is null then 'step ' || network else 'status ' || partner || ' ' || environment end), organisation_id, next_look_at)
  where next_look_at is not null;
