-- Payments are checked at `check_at`, and no longer looked for by the end of their authorization.
drop index payments_lapsing;
-- Vaults whose payment may be unpaid, of one tenant.
create index vaults_of_payments on vaults (organisation_id, environment, expires_at) where payment_id is not null;
