-- Pages keep space for the next version of each row. The hash of a payment or a transfer, the fee of a step and the amount that counts against a policy then change
-- in place: no index has these columns, so no index gets an entry. Many rows of a page change in one statement, so half of the page stays free, or a third where rows
-- are small.
alter table transfers set (fillfactor = 50);
alter table transfer_steps set (fillfactor = 50);
alter table policy_reservations set (fillfactor = 70);
do $$
declare
  part regclass;
begin
  for part in select inhrelid::regclass from pg_inherits where inhparent = 'payments'::regclass loop
    execute format('alter table %s set (fillfactor = 50)', part);
  end loop;
end
$$;
