import { apiKeysOf } from './api-keys.ts'
import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Body, Item, Query, ResponseBody } from './operations.ts'
import type { Listing, PageQuery } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

export type Organisation = ResponseBody<operations['organisations.current']>
export type OrganisationChange = Body<operations['organisations.update']>
export type NewOrganisation = Body<operations['organisations.create']>
/** A new organisation with its API keys. No later response shows their secrets. */
export type FoundedOrganisation = ResponseBody<operations['organisations.create']>
export type Member = Item<operations['organisations.members.list']>
/** A new member, by `accountId` or `email` (not both), and the role. */
export type NewMember = Body<operations['organisations.members.add']>
export type MemberChange = Body<operations['organisations.members.update']>
export type Role = Member['role']
export type AuditRecord = Item<operations['organisations.auditLog']>
export type AuditQuery = Query<operations['organisations.auditLog']>

/** The operations on the organisation of the API key, its members and its keys. */
export function organisationsOf(send: Send) {
  return {
    /** Creates an organisation with one test key. Only this response contains the key. */
    create: (body: NewOrganisation, options?: CallOptions): Promise<FoundedOrganisation> =>
      call(send, 'POST', '/organisations', { ...options, body }),
    /** The organisation of the calling key. */
    current: (options?: CallOptions): Promise<Organisation> =>
      call(send, 'GET', '/organisations/current', { ...options }),
    /** Renames the organisation. */
    update: (body: OrganisationChange, options?: CallOptions): Promise<Organisation> =>
      call(send, 'PATCH', '/organisations/current', { ...options, body }),
    /** Deletes the organisation of an owner who is signed in. 409 `organisation-not-empty` while it has money or obligations. */
    delete: (orgId: string, options?: CallOptions): Promise<void> =>
      call(send, 'DELETE', '/organisations/{orgId}', { ...options, params: { orgId } }),
    /** The hash-chained audit log, newest first. */
    auditLog: (query?: AuditQuery, options?: CallOptions): Listing<AuditRecord> =>
      list(send, '/organisations/current/audit-log', { ...options, query }),
    members: membersOf(send),
    apiKeys: apiKeysOf(send),
  }
}

function membersOf(send: Send) {
  return {
    /** Members and open invitations, newest first. */
    list: (query?: PageQuery, options?: CallOptions): Listing<Member> =>
      list(send, '/organisations/current/members', { ...options, query }),
    /** Invites a person by account id or email address. */
    add: (body: NewMember, options?: CallOptions): Promise<Member> =>
      call(send, 'POST', '/organisations/current/members', { ...options, body }),
    /** Changes the role of a member. */
    update: (accountId: string, body: MemberChange, options?: CallOptions): Promise<Member> =>
      call(send, 'PATCH', '/organisations/current/members/{accountId}', { ...options, params: { accountId }, body }),
    /** Removes a member or withdraws an invitation. */
    remove: (accountId: string, options?: CallOptions): Promise<void> =>
      call(send, 'DELETE', '/organisations/current/members/{accountId}', { ...options, params: { accountId } }),
  }
}
