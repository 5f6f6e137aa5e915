import type { HdCurve } from '@purser/protocol'
import { createReadFunds } from '../funds/index.ts'
import { createHoldingReader } from './balances/read.ts'
import { createDeriveAddress } from './children/children.ts'
import { createBookedInTime } from './deposits/booked.ts'
import { createFindSource } from './managed/source-store.ts'
import type { Deps } from './ports.ts'
import { createWalletDirectory } from './receiving.ts'
import { amountsOnHold, findBookedTo } from './screening/deposit-store.ts'

export type WalletPorts = Pick<
  Deps,
  | 'receivingWallets'
  | 'readHolding'
  | 'deriveAddress'
  | 'findSource'
  | 'sweepCursors'
  | 'tempoCursors'
  | 'deposits'
  | 'readFunds'
>

/** The ports that wallets add to the process. */
export function createWalletPorts(deps: Pick<Deps, 'db' | 'clock' | 'chains'>, curve: HdCurve): WalletPorts {
  const deposits = { bookedTo: findBookedTo, isBookedInTime: createBookedInTime(deps), amountsOnHold }
  return {
    receivingWallets: createWalletDirectory(deps),
    readHolding: createHoldingReader(deps),
    deriveAddress: createDeriveAddress(curve),
    findSource: createFindSource(),
    sweepCursors: new Map(),
    tempoCursors: new Map(),
    deposits,
    readFunds: createReadFunds({ ...deps, deposits }),
  }
}
