-- Since when an organisation is suspended, and why. Its members read the reason.
alter table organisations add column suspended_at timestamptz, add column suspension_reason text,
  add constraint organisations_suspension check ((suspended_at is null) = (suspension_reason is null));
