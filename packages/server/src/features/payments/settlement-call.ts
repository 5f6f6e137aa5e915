import {
  type Address,
  type Call3,
  decodeAuthorizationUsedLog,
  decodeTransferLog,
  encodeAggregate3,
  encodeTransferWithAuthorization,
  type Hex,
  multicall3Address,
  type TransferAuthorization,
} from '@purser/protocol'
import type { SettlementRow } from './settlement-store.ts'
import type { StoredAuthorization } from './store.ts'

/** Gas for one authorisation inside a batch; what is not used is not paid. Contract accounts may run code of their own. */
const gasOfKind = { ecdsa: 100_000n, bytes: 400_000n } as const
const gasOfDeployment = 1_200_000n
const gasOfTransaction = 60_000n

export interface SettlementCall {
  readonly to: Address
  readonly data: Hex
  readonly gasLimit: bigint
}

/**
 * The one transaction that settles these payments. Alone, an authorisation goes straight to its token; several go
 * through Multicall3, each allowed to fail by itself. The gas limit is a sum of fixed budgets and not an estimate,
 * because an estimate of calls that may fail finds the gas at which they fail.
 */
export function settlementCall(payments: readonly SettlementRow[]): SettlementCall {
  const calls = payments.flatMap(callsOf)
  const gasLimit = payments.reduce((gas, payment) => gas + gasOf(payment.settlement), gasOfTransaction)
  const only = calls.length === 1 ? calls[0] : undefined
  if (only !== undefined) return { to: only.target, data: only.callData, gasLimit }
  return { to: multicall3Address, data: encodeAggregate3(calls), gasLimit }
}

/** Gas that one payment adds to a batch at most; the day's budget is charged with it. */
export function gasOf(settlement: StoredAuthorization): bigint {
  return gasOfKind[settlement.signature.kind] + (settlement.deployment === null ? 0n : gasOfDeployment)
}

function callsOf(payment: SettlementRow): Call3[] {
  const { settlement } = payment
  const transfer: Call3 = {
    target: payment.asset as Address,
    allowFailure: true,
    callData: encodeTransferWithAuthorization(authorizationOf(settlement), settlement.signature),
  }
  if (settlement.deployment === null) return [transfer]
  return [
    { target: settlement.deployment.factory, allowFailure: true, callData: settlement.deployment.calldata },
    transfer,
  ]
}

export function authorizationOf(settlement: StoredAuthorization): TransferAuthorization {
  return {
    from: settlement.from,
    to: settlement.to,
    value: BigInt(settlement.value),
    validAfter: BigInt(settlement.validAfter),
    validBefore: BigInt(settlement.validBefore),
    nonce: settlement.nonce,
  }
}

export interface TokenLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
}

/**
 * Whether these logs say that the payment's money moved: its token used its authorisation, and moved its value from
 * its payer to its receiver. A success status alone proves nothing, since calls in a batch may fail one by one.
 */
export function isSettledBy(logs: readonly TokenLog[], payment: SettlementRow): boolean {
  const own = logs.filter((log) => log.address.toLowerCase() === payment.asset.toLowerCase())
  const used = own.some((log) => {
    const found = decodeAuthorizationUsedLog(log)
    return found?.authorizer === payment.settlement.from.toLowerCase() && found.nonce === payment.settlement.nonce
  })
  const moved = own.some((log) => {
    const transfer = decodeTransferLog(log)
    return (
      transfer?.from === payment.settlement.from.toLowerCase() &&
      transfer.to === payment.settlement.to.toLowerCase() &&
      transfer.value === BigInt(payment.settlement.value)
    )
  })
  return used && moved
}
