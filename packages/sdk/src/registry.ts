import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Body, Item, Json, Query } from './operations.ts'
import type { Listing } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

/**
 * A snapshot of a paid route. `amount` is decimal USD. Contains names and kinds of inputs. Never include secrets as
 * examples.
 */
export type RouteSnapshot = Body<operations['registry.snapshots.create']>
export type SnapshotAccepted = Json<operations['registry.snapshots.create']['responses'][202]>
export type RegistryRoute = Item<operations['registry.routes.list']>
export type RegistryQuery = Query<operations['registry.routes.list']>
/** A change of a route. A public route appears in the facilitator's discovery for every organisation. */
export type RegistryRouteChange = Body<operations['registry.routes.update']>

/** The operations on the organisation's paid routes. */
export function registryOf(send: Send) {
  return {
    snapshots: {
      /** Reports a paid route to the registry. The middlewares do this automatically. */
      create: (body: RouteSnapshot, options?: CallOptions): Promise<SnapshotAccepted> =>
        call(send, 'POST', '/registry/snapshots', { ...options, body }),
    },
    routes: {
      /** The organisation's reported routes, newest first. */
      list: (query?: RegistryQuery, options?: CallOptions): Listing<RegistryRoute> =>
        list(send, '/registry/routes', { ...options, query }),
      /** Returns a reported route. Throws `NotFoundError` for an unknown id. */
      get: (id: string, options?: CallOptions): Promise<RegistryRoute> =>
        call(send, 'GET', '/registry/routes/{id}', { ...options, params: { id } }),
      /** Makes a route public or private. */
      update: (id: string, body: RegistryRouteChange, options?: CallOptions): Promise<RegistryRoute> =>
        call(send, 'PATCH', '/registry/routes/{id}', { ...options, params: { id }, body }),
    },
  }
}
