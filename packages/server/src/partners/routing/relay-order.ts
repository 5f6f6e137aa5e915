import {
  type Address,
  bytesToHex,
  type Hex,
  hexToBytes,
  isHex,
  keccak256,
  sameAddress,
  uint256Max,
  utf8,
} from '@purser/protocol'
import { z } from 'zod'
import { wordOf } from '../../platform/contract-calls.ts'
import type { CallMeaning } from './guard.ts'
import type { RouteRequest } from './port.ts'

const uintText = z
  .string()
  .regex(/^(0x[0-9a-fA-F]{1,64}|[0-9]{1,78})$/)
  .transform(BigInt)
  .refine((value) => value <= uint256Max)
const uint32 = z.int().min(0).max(4_294_967_295)
const hexBytes = z.string().max(4_096).refine(isHex)
const chainName = z.string().min(1).max(64)

/**
 * The order that Relay's solver commits to for a deposit and that settlement enforces (relayprotocol/relay-settlement, packages/sdk, `Order`,
 * version 1). Only EVM accounts and tokens.
 */
export const Order = z.object({
  version: z.literal('v1'),
  solverChainId: chainName,
  solver: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  salt: uintText,
  inputs: z
    .array(
      z.object({
        payment: z.object({ chainId: chainName, currency: hexBytes, amount: uintText, weight: uintText }),
        refunds: z
          .array(
            z.object({
              chainId: chainName,
              recipient: hexBytes,
              currency: hexBytes,
              minimumAmount: uintText,
              deadline: uint32,
              extraData: hexBytes,
            }),
          )
          .max(8),
      }),
    )
    .max(8),
  output: z.object({
    chainId: chainName,
    payments: z
      .array(z.object({ recipient: hexBytes, currency: hexBytes, minimumAmount: uintText, expectedAmount: uintText }))
      .max(8),
    calls: z.array(hexBytes).max(8),
    deadline: uint32,
    extraData: hexBytes,
  }),
  fees: z
    .array(
      z.object({
        recipientChainId: chainName,
        recipient: hexBytes,
        currencyChainId: chainName,
        currency: hexBytes,
        amount: uintText,
      }),
    )
    .max(16),
})
export type Order = z.output<typeof Order>

const types = {
  Fee: 'Fee(string recipientChainId,bytes recipient,string currencyChainId,bytes currency,uint256 amount)',
  Input: 'Input(InputPayment payment,InputRefund[] refunds)',
  InputPayment: 'InputPayment(string chainId,bytes currency,uint256 amount,uint256 weight)',
  InputRefund:
    'InputRefund(string chainId,bytes recipient,bytes currency,uint256 minimumAmount,uint32 deadline,bytes extraData)',
  Order:
    'Order(string version,string solverChainId,address solver,uint256 salt,Input[] inputs,Output output,Fee[] fees)',
  Output: 'Output(string chainId,OutputPayment[] payments,uint32 deadline,bytes[] calls,bytes extraData)',
  OutputPayment: 'OutputPayment(bytes recipient,bytes currency,uint256 minimumAmount,uint256 expectedAmount)',
} as const

/** Each type with its referenced types in alphabetical order (EIP-712, "Definition of encodeType"). */
const typeHashes = {
  fee: textWord(types.Fee),
  input: textWord(types.Input + types.InputPayment + types.InputRefund),
  inputPayment: textWord(types.InputPayment),
  inputRefund: textWord(types.InputRefund),
  order: textWord(
    types.Order + types.Fee + types.Input + types.InputPayment + types.InputRefund + types.Output + types.OutputPayment,
  ),
  output: textWord(types.Output + types.OutputPayment),
  outputPayment: textWord(types.OutputPayment),
}

/** The id of an order's deposit: its EIP-712 `hashStruct`, without a domain. */
export function orderIdOf({ version, solverChainId, solver, salt, inputs, output, fees }: Order): Hex {
  const inputWords = inputs.map(({ payment, refunds }) => {
    const { chainId, currency, amount, weight } = payment
    const paid = hashed(typeHashes.inputPayment, textWord(chainId), bytesWord(currency), wordOf(amount), wordOf(weight))
    return hashed(typeHashes.input, paid, hashed(...refunds.map(refundWord)))
  })
  const feeWords = fees.map((fee) =>
    hashed(
      typeHashes.fee,
      textWord(fee.recipientChainId),
      bytesWord(fee.recipient),
      textWord(fee.currencyChainId),
      bytesWord(fee.currency),
      wordOf(fee.amount),
    ),
  )
  const head = [textWord(version), textWord(solverChainId), wordOf(BigInt(solver)), wordOf(salt)]
  return `0x${hashed(typeHashes.order, ...head, hashed(...inputWords), outputWord(output), hashed(...feeWords))}`
}

function refundWord(refund: Order['inputs'][number]['refunds'][number]): string {
  return hashed(
    typeHashes.inputRefund,
    textWord(refund.chainId),
    bytesWord(refund.recipient),
    bytesWord(refund.currency),
    wordOf(refund.minimumAmount),
    wordOf(BigInt(refund.deadline)),
    bytesWord(refund.extraData),
  )
}

function outputWord({ chainId, payments, deadline, calls, extraData }: Order['output']): string {
  const paymentWords = payments.map(({ recipient, currency, minimumAmount, expectedAmount }) => {
    const amounts = [wordOf(minimumAmount), wordOf(expectedAmount)]
    return hashed(typeHashes.outputPayment, bytesWord(recipient), bytesWord(currency), ...amounts)
  })
  const last = [wordOf(BigInt(deadline)), hashed(...calls.map(bytesWord)), bytesWord(extraData)]
  return hashed(typeHashes.output, textWord(chainId), hashed(...paymentWords), ...last)
}

function hashed(...words: readonly string[]): string {
  return bytesWord(`0x${words.join('')}`)
}

function bytesWord(bytes: Hex): string {
  return bytesToHex(keccak256(hexToBytes(bytes))).slice(2)
}

function textWord(text: string): string {
  return bytesToHex(keccak256(utf8(text))).slice(2)
}

/**
 * The effect of an order; undefined for unsupported orders. Relay has our names for the networks (relayprotocol/relay-depository,
 * deployments/addresses.prod.json). Supported are orders with one input, one payment, no calls, and refunds only to the
 * sender in one of the two tokens. The order does not bound the refund's amount.
 */
export function readOrder(order: Order, request: RouteRequest): Omit<CallMeaning, 'changes'> | undefined {
  const { from, to, fromAddress } = request
  const { inputs, output } = order
  const [[input], [payment]] = [inputs, output.payments]
  if (input === undefined || inputs.length > 1 || payment === undefined || output.payments.length > 1) return undefined
  if (output.calls.length > 0 || input.payment.chainId !== from.network.name) return undefined
  if (![from, to].every(({ network }) => network.partners.includes('relay')) || output.chainId !== to.network.name)
    return undefined
  const isOurs = ({ chainId, recipient, currency }: (typeof input.refunds)[number]) =>
    isPaddedAddress(recipient, fromAddress) &&
    [from, to].some(({ network, token }) => chainId === network.name && isPaddedAddress(currency, token.address))
  if (input.refunds.length === 0 || !input.refunds.every(isOurs)) return undefined
  const { recipient, currency, minimumAmount } = payment
  if (recipient.length !== 42 || currency.length !== 42 || input.payment.currency.length !== 42) return undefined
  return {
    spends: { token: input.payment.currency, rawAmount: input.payment.amount },
    arrives: { chainId: to.network.chainId, token: currency, recipient, rawMin: minimumAmount },
    refundTo: fromAddress,
  }
}

function isPaddedAddress(bytes: Hex, account: Address): boolean {
  return bytes.length === account.length && sameAddress(bytes, account)
}
