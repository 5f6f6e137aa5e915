import type { MppxBill } from '@purser/devnet/mppx'
import { type Child, startChild } from './children.ts'
import { priceUsd } from './ground.ts'
import type { Bill } from './payments.ts'

export interface MppxServer {
  readonly child: Child
  readonly port: number
}

/** The payment terms in the form of the official server, with the benchmark's secret. */
export function mppxBillOf({ payTo, token, network }: Bill): MppxBill {
  if (token.eip712 === null) throw new Error(`${token.symbol} cannot be paid by a signature`)
  return {
    realm: '127.0.0.1',
    secret: 'thirty-two bytes or more, for the bench alone',
    payTo,
    token: token.address,
    domain: token.eip712,
    chainId: network.chainId,
    price: priceUsd,
  }
}

/** Parses the payment terms that the parent process sent; trusted input. */
export function readBill(text: string): MppxBill {
  return JSON.parse(text)
}

/** Starts the official mppx server; it takes payments of this bill. */
export async function startMppx(bill: Bill): Promise<MppxServer> {
  const child = await startChild('official-mppx.ts', { BENCH_MPPX_BILL: JSON.stringify(mppxBillOf(bill)) })
  return { child, port: Number(child.ready('port')) }
}

const requiredMarks = ['PAYMENT-REQUIRED: ', 'payment-required: '].map((mark) => Buffer.from(mark))
const idMark = Buffer.from('Payment id="')

/** The id of the first MPP challenge in a response that also has an x402 challenge; empty otherwise. */
export function challengeIdOf(response: Buffer, headEnd: number): string {
  const isRequested = requiredMarks.some((mark) => response.indexOf(mark) >= 0)
  const at = response.indexOf(idMark)
  if (!isRequested || at < 0 || at > headEnd) return ''
  return response.toString('latin1', at + idMark.length, response.indexOf('"', at + idMark.length))
}
