-- The account that invited the person, or that created the key that did: an invitation that is not accepted ends with its membership.
alter table members add column invited_by text;
