import type { WalletSigner } from '../../custody/index.ts'
import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { PaymentDeps } from '../payments/index.ts'

/** Dependencies of the feature testing. */
export interface Deps extends PlatformDeps, PaymentDeps {
  /** Whether organisations may advance their test environment in time. */
  readonly hasTestClock: boolean
  /** The account that sends test money, only on test networks; undefined if the operator has set none. */
  readonly faucet: Pick<WalletSigner, 'address' | 'signTransferWithAuthorization'> | undefined
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
