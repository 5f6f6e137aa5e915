import {
  decodePaymentResponseHeader as decodeForAxios,
  wrapAxiosWithPayment,
  x402Client as X402AxiosClient,
} from '@x402/axios'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch'
import axios from 'axios'
import { Receipt } from 'mppx'
import { evm, Fetch, tempo } from 'mppx/client'
import { createClient, http } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { tempoModerato } from 'viem/tempo/chains'
import { decodeXPaymentResponse, wrapFetchWithPayment as wrapFetchWithPaymentV1 } from 'x402-fetch'

/** What an agent received from its call. */
interface Call {
  readonly status: number
  readonly body: unknown
  /** The payment header that the official client sent with its last request. */
  readonly sent: Readonly<Record<string, string>>
  /** The response's receipt, read by the official decoder; undefined when there was none. */
  readonly receipt: unknown
}

export interface Agent {
  call(url: string): Promise<Call>
}

export interface AgentOptions {
  readonly account: PrivateKeyAccount
  /** Runs before a request that carries a payment is sent. */
  readonly beforePaying?: () => Promise<void>
}

/** Options of the agents that pay through a `fetch`. */
export interface FetchingOptions extends AgentOptions {
  /** The payment is signed but not sent: the call is answered locally, and `sent` has the headers. */
  readonly dry?: boolean
}

const network = 'eip155:84532'

/** `@x402/fetch`, version 2 of the protocol. */
export function fetchAgent({ account, ...options }: FetchingOptions): Agent {
  const client = new x402Client().register(network, new ExactEvmScheme(account))
  return agentOf('payment-signature', options, async (url, listening) => {
    const response = await wrapFetchWithPayment(listening, client)(url)
    const receipt = response.headers.get('payment-response')
    return { response, receipt: receipt === null ? undefined : decodePaymentResponseHeader(receipt) }
  })
}

/** `x402-fetch`, version 1 of the protocol. */
export function fetchV1Agent({ account, ...options }: FetchingOptions): Agent {
  return agentOf('x-payment', options, async (url, listening) => {
    const response = await wrapFetchWithPaymentV1(listening, account)(url)
    const receipt = response.headers.get('x-payment-response')
    return { response, receipt: receipt === null ? undefined : decodeXPaymentResponse(receipt) }
  })
}

/** The address of an EIP-3009 token and the domain of its signatures, which official mppx requires. */
export interface PaidIn {
  readonly chainId: number
  readonly token: `0x${string}`
  readonly authorization: { readonly name: string; readonly version: string }
}

/** `mppx`, with its method `evm/charge`. */
export function mppxEvmAgent(
  { account, ...options }: FetchingOptions,
  { chainId, token, authorization }: PaidIn,
): Agent {
  const limits = { networks: [chainId], currencies: [token], decimals: 6, maxAmount: '1' }
  const methods = evm({ account, authorization, ...limits })
  return agentOf('authorization', options, async (url, listening) =>
    withReceipt(await Fetch.from({ methods, fetch: listening })(url)),
  )
}

/** `mppx`, with its method `tempo/charge`. Pull: the server sends the transaction. Push: the payer has sent it. */
export function mppxTempoAgent(
  { account, ...options }: FetchingOptions,
  tempoRpc: string,
  mode?: 'pull' | 'push',
): Agent {
  const getClient = () => createClient({ chain: tempoModerato, transport: http(tempoRpc) })
  const methods = [tempo.charge({ account, getClient, ...(mode !== undefined && { mode }) })]
  return agentOf('authorization', options, async (url, listening) =>
    withReceipt(await Fetch.from({ methods, fetch: listening })(url)),
  )
}

function withReceipt(response: Response): { response: Response; receipt: unknown } {
  const isReceipted = response.headers.has('payment-receipt')
  return { response, receipt: isReceipted ? Receipt.fromResponse(response) : undefined }
}

type Paying = (url: string, listening: typeof fetch) => Promise<{ response: Response; receipt: unknown }>

function agentOf(header: string, { beforePaying, dry }: Omit<FetchingOptions, 'account'>, pay: Paying): Agent {
  return {
    async call(url) {
      let sent: Record<string, string> = {}
      const listening: typeof fetch = async (input, init) => {
        const request = new Request(input, init)
        const payment = request.headers.get(header)
        if (payment !== null) {
          sent = { [header]: payment }
          await beforePaying?.()
          if (dry) return Response.json({})
        }
        return fetch(request)
      }
      const { response, receipt } = await pay(url, listening)
      return { status: response.status, body: await response.json(), sent, receipt }
    },
  }
}

/** `@x402/axios`, version 2 of the protocol. */
export function axiosAgent({ account, beforePaying }: AgentOptions): Agent {
  return {
    async call(url) {
      let sent: Record<string, string> = {}
      const plain = axios.create()
      plain.interceptors.request.use(async (config) => {
        const payment = config.headers.get('payment-signature')
        if (typeof payment === 'string') {
          sent = { 'payment-signature': payment }
          await beforePaying?.()
        }
        return config
      })
      const client = new X402AxiosClient().register(network, new ExactEvmScheme(account))
      const response = await wrapAxiosWithPayment(plain, client)
        .get<unknown>(url)
        .catch((error: unknown) => {
          if (axios.isAxiosError<unknown>(error) && error.response !== undefined) return error.response
          throw error
        })
      const receipt: unknown = response.headers['payment-response']
      return {
        status: response.status,
        body: response.data,
        sent,
        receipt: typeof receipt === 'string' ? decodeForAxios(receipt) : undefined,
      }
    },
  }
}
