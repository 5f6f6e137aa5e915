import { z } from 'zod'
import type { Environment, Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql } from '../../platform/db/db.ts'
import { type ListedRows, listRows } from '../../platform/db/page.ts'
import { type AccountId, type ApiKeyId, id, type OrganisationId, type RequestId } from '../../platform/ids.ts'
import type { RequestQuery } from './schema.ts'

const RequestRow = z.object({
  id: id('req'),
  method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
  route: z.string(),
  status: z.number(),
  durationMs: z.number(),
  apiKeyId: id('key').nullable(),
  accountId: id('acc').nullable(),
  code: z.string().nullable(),
  createdAt: z.date(),
})
type RequestRow = z.output<typeof RequestRow>

const columns = sql`id, method, route, status, duration_ms, api_key_id, account_id, code, created_at`

/** A request to be stored. */
export interface NewRequest {
  readonly organisationId: OrganisationId
  readonly environment: Environment
  readonly id: RequestId
  readonly method: string
  readonly route: string
  readonly status: number
  readonly durationMs: number
  readonly apiKeyId: ApiKeyId | null
  readonly accountId: AccountId | null
  readonly code: string | null
  readonly createdAt: Date
}

/** Returns requests that match all filters, newest first, one more than the limit. Reads at most the tenant's rows, whose number is limited. */
export function listRequests(
  db: Queryable,
  tenant: Tenant,
  { method, route, status, apiKeyId, from, to }: Omit<RequestQuery, 'limit' | 'cursor'>,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<RequestRow>> {
  const least = status === undefined ? undefined : Number(status.replace('xx', '00'))
  const most = status === undefined ? undefined : Number(status.replace('xx', '99'))
  return listRows(
    db,
    RequestRow,
    page.limit,
    sql`
    select ${columns} from request_log
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      ${page.after === undefined ? sql`` : sql`and id < ${page.after}`}
      ${method === undefined ? sql`` : sql`and method = ${method}`}
      ${route === undefined ? sql`` : sql`and route = ${route}`}
      ${least === undefined ? sql`` : sql`and status between ${least} and ${most}`}
      ${apiKeyId === undefined ? sql`` : sql`and api_key_id = ${apiKeyId}`}
      ${from === undefined ? sql`` : sql`and created_at >= ${from}`}
      ${to === undefined ? sql`` : sql`and created_at < ${to}`}
    order by id desc`,
  )
}

export function findRequest(db: Queryable, tenant: Tenant, requestId: RequestId): Promise<RequestRow | undefined> {
  return db.maybeOne(
    RequestRow,
    sql`
    select ${columns} from request_log
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${requestId}`,
  )
}

export async function insertRequests(db: Queryable, requests: readonly NewRequest[]): Promise<void> {
  const each = <T>(read: (request: NewRequest) => T): T[] => requests.map(read)
  await db.run(sql`
    insert into request_log (organisation_id, environment, ${columns})
    select * from unnest(
      ${each((one) => one.organisationId)}::text[], ${each((one) => one.environment)}::text[], ${each((one) => one.id)}::text[],
      ${each((one) => one.method)}::text[], ${each((one) => one.route)}::text[], ${each((one) => one.status)}::smallint[],
      ${each((one) => one.durationMs)}::int[], ${each((one) => one.apiKeyId)}::text[], ${each((one) => one.accountId)}::text[],
      ${each((one) => one.code)}::text[], ${each((one) => one.createdAt.toISOString())}::timestamptz[])
    on conflict do nothing`)
}

/** Deletes all but the newest requests of each tenant. Each tenant's bound is read once: a join evaluated it for each row. */
export async function deleteBeyond(
  db: Queryable,
  tenants: readonly Pick<Tenant, 'organisationId' | 'environment'>[],
  rowsMax: number,
): Promise<void> {
  await db.run(sql`
    with beyond as materialized (
      select organisation_id, environment, (
        select id from request_log as own
        where own.organisation_id = tenant.organisation_id and own.environment = tenant.environment
        order by id desc offset ${rowsMax} limit 1) as newest
      from unnest(${tenants.map((one) => one.organisationId)}::text[], ${tenants.map((one) => one.environment)}::text[])
        as tenant (organisation_id, environment))
    delete from request_log using beyond
    where request_log.organisation_id = beyond.organisation_id and request_log.environment = beyond.environment
      and request_log.id <= beyond.newest`)
}

/** Deletes at most `rowsMax` requests that arrived before a time; returns how many. */
export function deleteOldRequests(db: Queryable, before: Date, rowsMax: number): Promise<number> {
  return db.run(sql`
    delete from request_log where ctid = any(array(
      select ctid from request_log where created_at < ${before} order by created_at limit ${rowsMax}))`)
}
