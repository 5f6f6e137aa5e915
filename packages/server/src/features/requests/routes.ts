import { defineErrors } from '../../platform/errors.ts'
import type { RequestId } from '../../platform/ids.ts'
import type { Operation, Page } from '../../platform/operation.ts'
import { openCursor, pageOf } from '../../platform/wire.ts'
import { type Ctx, type Deps, operation } from './ports.ts'
import { LoggedRequest, RequestParams, RequestQuery } from './schema.ts'
import { findRequest, listRequests } from './store.ts'

const fail = defineErrors({
  'request-not-found': {
    status: 404,
    title: 'Request Not Found',
    detail: 'No such request, or it is no longer in the request log.',
    causes: [
      'The request is older than 7 days, or more than 5,000 requests came after it.',
      'It was made less than about a second ago, without a valid key, or with a key of the other environment. Reads in the dashboard are not logged.',
    ],
    fix: 'For a new request, try again after a second. `GET /requests` lists the stored requests. For an older one, the operator searches the log for the `requestId`.',
  },
})

export const requestOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'requests.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/requests',
    summary: 'List the last requests of the organisation, newest first.',
    description:
      "Requests by API keys, and changes that people made in the dashboard, in the caller's environment: the last 5,000, for 7 days. A request appears about a second after its response. Bodies, queries and header fields are not stored.",
    query: RequestQuery,
    output: LoggedRequest,
    list: true,
    run: (ctx, { query }) => pageOfRequests(ctx, query),
  }),
  operation({
    id: 'requests.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/requests/{requestId}',
    summary: 'Get a request by the `X-Request-Id` of its response.',
    description: 'Includes the status of its response. Requests are kept for 7 days.',
    params: RequestParams,
    output: LoggedRequest,
    errors: fail.table,
    run: (ctx, { params }) => getRequest(ctx, params.requestId),
  }),
]

async function pageOfRequests(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  { limit, cursor, ...filters }: RequestQuery,
): Promise<Page<LoggedRequest>> {
  const rows = await listRequests(ctx.db, ctx.tenant, filters, { limit, after: openCursor(cursor) })
  return pageOf(rows, limit, (row) => row.id)
}

async function getRequest(ctx: Pick<Ctx, 'db' | 'tenant'>, requestId: RequestId): Promise<LoggedRequest> {
  const row = await findRequest(ctx.db, ctx.tenant, requestId)
  if (row === undefined) throw fail('request-not-found')
  return row
}
