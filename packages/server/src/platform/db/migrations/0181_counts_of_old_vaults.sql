-- Vaults that were there before 0180. A file of its own, so that no writer waits while they are counted.
insert into vault_counts (organisation_id, environment, active, persisted, bytes)
select organisation_id, environment, sum(active), sum(persisted), sum(bytes) from (
  select organisation_id, environment, (counted_as = 'active')::integer as active, (counted_as = 'persisted')::integer as persisted, bytes from vaults
  union all
  select organisation_id, environment, -active, -persisted, -bytes from vault_count_changes
) as counted group by organisation_id, environment;
