import type { Operation } from '../../platform/operation.ts'
import { fail, failBody } from './errors.ts'
import { getRoute, pageOfRoutes, publishRoute } from './listing.ts'
import { type Deps, operation } from './ports.ts'
import * as schema from './schema.ts'
import { acceptSnapshot } from './snapshots.ts'

export const registryOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'registry.snapshots.create',
    needs: { role: 'member', scope: 'payments' },
    method: 'POST',
    path: '/registry/snapshots',
    summary: 'Register a paid route as it was seen; the middlewares send this by themselves.',
    description:
      'One route per host, method and pattern, in which whatever looks like an identifier is {id}: seen again, it is brought up to date. Examples of what is named like a credential are dropped.',
    input: schema.Snapshot,
    output: schema.SnapshotAccepted,
    status: 202,
    errors: failBody.table,
    run: (ctx, { body }) => acceptSnapshot(ctx, body),
  }),
  operation({
    id: 'registry.routes.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/registry/routes',
    summary: 'List your paid routes that were seen, newest first.',
    description: 'The routes of your organisation, as they were last reported.',
    query: schema.RouteQuery,
    output: schema.RegistryRoute,
    list: true,
    run: (ctx, { query }) => pageOfRoutes(ctx, query),
  }),
  operation({
    id: 'registry.routes.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/registry/routes/{id}',
    summary: 'Get one paid route.',
    description: 'With its price and parameters, as they were last reported.',
    params: schema.RouteParamsInPath,
    output: schema.RegistryRoute,
    errors: fail.table,
    run: (ctx, { params }) => getRoute(ctx, params.id),
  }),
  operation({
    id: 'registry.routes.update',
    needs: { role: 'member', scope: 'payments' },
    method: 'PATCH',
    path: '/registry/routes/{id}',
    summary: 'Make a paid route public, or private again.',
    description:
      'A public route is listed by GET /facilitator/discovery/resources for every organisation of the environment: your organisation’s id, address, method, price, protocols, and the names of its parameters. Private by default.',
    params: schema.RouteParamsInPath,
    input: schema.RouteChange,
    output: schema.RegistryRoute,
    errors: fail.table,
    run: (ctx, { params, body }) => publishRoute(ctx, params.id, body.isPublic),
  }),
]
