import { type Address, type Hex, hexToBytes, l1FeeOf, tokenByAddress } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import { type Fees, takesDataGas } from '../fees/fees.ts'
import type { Chain, FeeSponsor, SignedTransaction, TempoFields, TempoTransaction } from '../port.ts'
import type { LaneSigner } from './port.ts'
import type { CallData, LaneTransactionRow, SignedAttempt } from './store.ts'

/** The signers of the transactions of a network's lanes. */
export interface SigningParts {
  readonly deps: Pick<Deps, 'clock'>
  readonly chain: Pick<Chain, 'network' | 'offeredFees'>
  /** The signer of a resumed account. */
  readonly signerOf: (account: Address) => LaneSigner
  /** Pays the fees of sponsored transactions. Without a sponsor, those are not sent. */
  readonly sponsor?: FeeSponsor | undefined
}

/** A transaction to sign, as its next attempt. */
interface Wanted {
  readonly transaction: LaneTransactionRow
  readonly called: CallData
  readonly sequence: number
  readonly fees: Fees
}

export interface Signed {
  readonly transaction: LaneTransactionRow
  readonly attempt: SignedAttempt
}

/** Signs attempts with the fees of each, and with the present gas of its bytes. Nothing is stored or sent. */
export async function sign(parts: SigningParts, wanted: readonly Wanted[]): Promise<Signed[]> {
  const dataGas = takesDataGas(parts.chain.network) ? (await parts.chain.offeredFees()).dataGas : 0n
  const createdAt = parts.deps.clock.now()
  return Promise.all(
    wanted.map(async ({ transaction, called, sequence, fees: { maxFee, priorityFee } }) => {
      const fees = { maxFee, priorityFee }
      const { hash, raw } = await signForm(parts, transaction, { ...called, fees, dataGas })
      return { transaction, attempt: { transactionId: transaction.id, sequence, hash, raw, ...fees, createdAt } }
    }),
  )
}

/**
 * Signs a lane's transaction in its network's format: EIP-1559, or Tempo's type 0x76 on networks without a native coin, whose fee is paid in the
 * row's fee token. Without a fee token, the called token pays, which the account has because it sends it. Throws when a required signer is missing;
 * nothing is sent then. `dataGas` for each 256 bytes (see `OfferedFees`) is added to the stored gas limit, which is for the execution.
 */
function signForm(
  parts: SigningParts,
  row: LaneTransactionRow,
  { data, before, fees, dataGas }: CallData & { readonly fees: Fees; readonly dataGas: bigint },
): Promise<SignedTransaction> {
  const { network } = parts.chain
  const { nonce, toAddress: to, value } = row
  const gasLimit = row.gasLimit + l1FeeOf(dataGas, row.dataBytes)
  const { chainId } = network
  const offered = { maxFeePerGas: fees.maxFee, maxPriorityFeePerGas: fees.priorityFee }
  if (network.nativeCoin !== null)
    return parts.signerOf(row.sender).signTransaction({ chainId, nonce, to, data, value, gasLimit, ...offered })
  if (to === null) throw new Error('a transaction without a recipient cannot be sent here')
  const calls = [...before, { to, value, data }]
  const times = { validBefore: undefined, validAfter: undefined }
  const fields = { chainId, calls, nonceKey: 0n, nonce, ...times, gasLimit, ...offered }
  if (row.isSponsored) return signSponsored(parts, row, fields)
  const feeToken = row.feeToken ?? tokenByAddress(network, to)?.address
  return signOwn(parts, row, { ...fields, feeToken, feePaidBy: 'sender' })
}

async function signOwn(parts: SigningParts, row: LaneTransactionRow, fields: TempoFields): Promise<SignedTransaction> {
  const { raw, hash } = await signTempo(parts, row, fields)
  if (hash === undefined) throw new Error('a transaction whose sender pays the fee must have a hash')
  return { raw, hash }
}

/** The sponsor pays the fee and names the token. The planner has bounded the cost. */
async function signSponsored(
  parts: SigningParts,
  row: LaneTransactionRow,
  fields: Omit<TempoFields, 'feeToken' | 'feePaidBy'>,
): Promise<SignedTransaction> {
  const { feeToken } = row
  if (parts.sponsor === undefined || feeToken === null)
    throw new Error('a sponsored transaction has no sponsor or no fee token')
  const own = await signTempo(parts, row, { ...fields, feeToken: undefined, feePaidBy: 'sponsor' })
  return parts.sponsor.signTempoFeePayer(own, feeToken)
}

async function signTempo(
  { signerOf }: SigningParts,
  { sender }: LaneTransactionRow,
  fields: TempoFields,
): Promise<TempoTransaction> {
  const signed = await signerOf(sender).signTempoTransaction?.(fields)
  if (signed === undefined) throw new Error('the account has no signer for a network without a native coin')
  return signed
}

/** The members of an EIP-1559 transaction before its gas limit: chain ID, nonce, priority fee and maximum fee. */
const membersBefore = 4

/** The gas limit in the bytes of a signed EIP-1559 transaction. Source: EIP-1559; yellow paper, appendix B. */
export function signedGasLimit(raw: Hex): bigint {
  const bytes = hexToBytes(raw)
  const listHead = bytes[1] ?? 0
  let at = 2 + Math.max(0, listHead - 0xf7)
  for (let passed = 0; passed < membersBefore; passed++) at = endOf(bytes, at)
  const head = bytes[at] ?? 0
  const digits = bytes.subarray(head < 0x80 ? at : at + 1, endOf(bytes, at))
  return digits.reduce((number, byte) => number * 256n + BigInt(byte), 0n)
}

/** Where the integer that begins here ends. One byte below 0x80 is its own encoding. */
function endOf(bytes: Uint8Array, at: number): number {
  return at + 1 + Math.max(0, (bytes[at] ?? 0) - 0x80)
}
