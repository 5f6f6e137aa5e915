import type { HdCurve } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import { createHoldingReader } from './balances/read.ts'
import { createDeriveAddress } from './children/derive.ts'
import { createBookedInTime } from './deposits/booked.ts'
import { findBookedTo } from './deposits/cursor-store.ts'
import { createWalletDirectory } from './receiving.ts'
import { amountsOnHold } from './screening/deposit-store.ts'

/** The ports that wallets add to the process. */
export function createWalletPorts(deps: Pick<Deps, 'db' | 'clock' | 'chains'>, curve: HdCurve) {
  return {
    receivingWallets: createWalletDirectory(deps),
    readHolding: createHoldingReader(deps),
    deriveAddress: createDeriveAddress(curve),
    deposits: { bookedTo: findBookedTo, isBookedInTime: createBookedInTime(deps), amountsOnHold },
  }
}
