-- Vaults whose end is due to be reported, of one tenant: the index by time alone would read those of all others that are due earlier.

create index concurrently if not exists vaults_to_report on vaults (organisation_id, environment, expiring_due) where expiring_due is not null;
