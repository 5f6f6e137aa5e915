import type { ServiceSealPort } from '../../custody/service-seal.ts'
import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import type { CustomerUrls } from '../../platform/customer-url.ts'
import type { GuardedFetch } from '../../platform/guarded-fetch.ts'
import type { Limiter } from '../../platform/http/limits.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { EndedReaders } from '../../platform/reader.ts'
import type { PlanDeps } from '../plans/index.ts'
import type { Listeners } from './listen/listeners.ts'

/** Dependencies of the feature webhooks. */
export interface Deps extends PlatformDeps, PlanDeps, ServiceSealPort {
  readonly endedReaders: EndedReaders
  /** The event streams that this process has open. */
  readonly listeners: Listeners
  /** Fetches URLs that customers gave. */
  readonly guardedFetch: GuardedFetch
  /** The rule for such URLs in this deployment. */
  readonly customerUrls: CustomerUrls
  /** Days that rows of events, deliveries and attempts stay before they are deleted; default and least: 30. */
  readonly eventsKeptDays?: number | undefined
  /** Limits the deliveries that an owner's requests write again, apart from the owner's limits of requests. */
  readonly redeliveries: Limiter
  /** Notified after a commit that deliveries are pending, where this process delivers. Must not throw. */
  readonly deliveriesWaiting?: () => void
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
