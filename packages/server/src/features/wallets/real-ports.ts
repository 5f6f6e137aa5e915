import type { HdCurve, NetworkName } from '@purser/protocol'
import { type Clock, instantOf } from '../../platform/clock.ts'
import type { Queryable } from '../../platform/db/db.ts'
import { pause } from '../../platform/work/loop.ts'
import { createReadFunds } from '../funds/index.ts'
import { createHoldingReader } from './balances/read.ts'
import { createDeriveAddress } from './children/children.ts'
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
  | 'screeningCursors'
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
    screeningCursors: { wallets: new Map(), deposits: new Map() },
    deposits,
    readFunds: createReadFunds({ ...deps, deposits }),
  }
}

const pollMs = 50

/** Returns a function that waits until the deposits of a block are booked, for `msMax` milliseconds at most, and returns whether they are. */
export function createBookedInTime({
  clock,
  waitMs = (ms) => pause(ms, new AbortController().signal),
}: {
  readonly clock: Clock
  readonly waitMs?: (ms: number) => Promise<void>
}) {
  return async (
    db: Queryable,
    network: NetworkName,
    { block, msMax }: { readonly block: bigint; readonly msMax: number },
  ): Promise<boolean> => {
    const until = instantOf(clock.now().getTime() + msMax)
    for (;;) {
      const bookedTo = await findBookedTo(db, network)
      if (bookedTo !== undefined && bookedTo >= block) return true
      if (clock.now() >= until) return false
      await waitMs(pollMs)
    }
  }
}
