-- The key that invited the person, if it was one: an invitation that is not accepted ends with it.
alter table members add column invited_by_key text;
