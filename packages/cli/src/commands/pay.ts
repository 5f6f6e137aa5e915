import { type Command, CommandError } from '../command.ts'
import { serviceOf, serviceOptions } from '../service.ts'

/** `purser pay`: fetches a URL, and pays it from a managed wallet if it costs something. */
export const pay: Command = {
  name: 'pay',
  summary: 'Fetch a URL, and pay from a managed wallet if it responds 402.',
  positionals: ['<url>'],
  options: {
    wallet: { value: '<mwt_…|cad_…>', about: 'the wallet or child address that pays (required)' },
    max: { value: '<amount>', about: 'the most to pay, in whole tokens, such as 0.05 (required)' },
    method: { value: '<method>', about: 'of the request (default GET)' },
    body: { value: '<text>', about: 'of the request' },
    'idempotency-key': { value: '<key>', about: 'repeat with the same key: nothing is paid twice' },
    ...serviceOptions,
  },
  notes: [
    'Prints the body of the response. With --format json: the whole outcome, with the payment.',
    'Example: purser pay https://api.example.com/forecast --wallet mwt_… --max 0.05',
  ],
  async run(args, io) {
    const [url = ''] = args.positionals
    const { wallet, max, method, body, 'idempotency-key': idempotencyKey } = args.options
    if (wallet === undefined || max === undefined) throw new CommandError('Give --wallet and --max.')
    const { purser } = await serviceOf(args, io)
    const request = { fromWalletId: wallet, maxAmount: max, url, ...(method && { method }), ...(body && { body }) }
    const result = await purser.request('POST', '/wallet-infra/pay', {
      body: request,
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    })
    return { exitCode: isPaid(result) ? 0 : 1, lines: linesOf(result), json: result }
  },
}

interface Paid {
  readonly id: string | null
  readonly status?: string
  readonly outcome?: string
  readonly amount?: string
  readonly fromToken?: string
  readonly approval?: { readonly id: string; readonly status: string } | null
  readonly response?: { readonly status: number; readonly body?: string | null; readonly bodyEncoding?: string } | null
}

/** Whether the seller delivered. False if the seller refused the payment, or if the payment waits for an approval. */
function isPaid(result: unknown): boolean {
  const { response } = result as Paid
  return response !== null && response !== undefined && response.status < 400
}

function linesOf(result: unknown): readonly string[] {
  const { id, status, amount, fromToken, approval, response } = result as Paid
  const payment = id === null ? 'Nothing was paid.' : `${id}: ${amount} ${fromToken}, ${status}`
  if (approval?.status === 'waiting') return [payment, `Waiting for the approval ${approval.id}.`]
  if (response === null || response === undefined) return [payment]
  const isText = response.bodyEncoding !== 'base64'
  const body = isText ? (response.body ?? '') : 'The body is not text: use --format json.'
  return [payment, `HTTP ${response.status}`, '', ...body.split('\n')]
}
