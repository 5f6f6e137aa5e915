import { expect, test } from 'vitest'
import { createPurser } from '../src/index.ts'
import { fileLedger, postgresLedger } from '../src/ledgers/index.ts'
import { walletMiddleware as expressWallet, payMiddleware } from '../src/middleware/express.ts'
import { payHook, walletPlugin } from '../src/middleware/fastify.ts'
import { payMiddleware as honoPay, walletMiddleware as honoWallet } from '../src/middleware/hono.ts'
import { withPayment } from '../src/middleware/next.ts'
import { createPayingFetch, memoryLedger } from '../src/pay/index.ts'
import { fetchKeys, verifyItem } from '../src/seal/index.ts'
import { unwrap } from '../src/webhooks/index.ts'
import { account } from './pay-stage.ts'

/** Options as a caller without types may give them. */
type Options = { readonly [name: string]: unknown }
type Made = (options: never) => unknown

const none = undefined
const privateKey = `0x${'5ec2e7'.repeat(10)}5ec2`
const client = { apiKey: 'svc_test_sk_for-the-sdk-tests', baseUrl: 'https://purser.test' }
const wallet = { ...client, walletId: 'byw_1' }
const pay = { signer: account, limits: { perCall: '0.05' } }
const managed = { wallet: { id: 'mwt_1', wallets: { pay: async () => none } }, limits: { perCall: '0.05' } }

const clientFaults: [string, unknown, RegExp][] = [
  ['apiKey', none, /^apiKey is missing\. .*svc_test_sk_/],
  ['apiKey', '', /^apiKey is ""\. .*svc_test_sk_/],
  ['apiKey', 'pk_live_0123456789secret', /^apiKey is "pk_l…"\./],
  ['apiKey', 'svc_test_sk_a\n', /^apiKey is "svc_…"\. .*white space/],
  ['baseUrl', none, /^baseUrl is missing\. .*https:/],
  ['baseUrl', 'pay.example.com', /^baseUrl is "pay\.example\.com"\./],
  ['baseUrl', 'ftp://pay.example.com', /^baseUrl is "ftp:/],
  ['baseUrl', 'http://pay.example.com', /^baseUrl is "http:.*in the clear.*https.*allowInsecure/],
  ['baseUrl', 'http://127.0.0.1.example.com', /^baseUrl is "http:.*in the clear/],
  ['allowInsecure', 'yes', /^allowInsecure is "yes"\. Give true or false/],
  ['fetch', 'node-fetch', /^fetch is "node-fetch"\. Give a function/],
  ['timeoutMs', '30s', /^timeoutMs is "30s"\. Give a whole number, at least 1/],
  ['timeoutMs', 0, /^timeoutMs is 0\./],
  ['maxRetries', -1, /^maxRetries is -1\./],
  ['retry', 3, /^retry is 3\./],
  ['retry', { delayMsFirst: 'soon' }, /^retry\.delayMsFirst is "soon"\./],
  ['timeout', 5, /^timeout is 5\. There is no such option\. Use .*timeoutMs/],
  ['retry', { first: 1 }, /^retry\.first is 1\. There is no such option\. Use delayMsFirst/],
  ['session', null, /^session is null\./],
  ['session', { organisation: 'org_1' }, /^session\.organisation is "org_1"\. There is no such option/],
  ['session', { environment: 'prod' }, /^session\.environment is "prod"\. Give "test" or "live"/],
]

const routeFaults: [string, unknown, RegExp][] = [
  ['description', 1, /^description is 1\. Give text/],
  ['mimeType', {}, /^mimeType is \{\}\./],
  ['onPending', 'wait', /^onPending is "wait"\. Give "release" or "hold"/],
  ['holdMsMax', -1, /^holdMsMax is -1\./],
  ['bodyBytesMax', '10MB', /^bodyBytesMax is "10MB"\./],
  ['freeMethods', 'HEAD', /^freeMethods is "HEAD"\. List methods/],
  ['cors', { origins: 'https://app.test' }, /^cors\.origins is "https:/],
  ['cors', { origins: '*', maxAge: 5 }, /^cors\.maxAge is 5\. There is no such option\. Use origins/],
  ['acceptsSessions', true, /^acceptsSessions is true\. There is no such option\. Use .*acceptSessions/],
  ['protocols', [], /^protocols is \[\]\./],
  ['credentialHeader', 'X-Pay', /^credentialHeader is "X-Pay"\./],
  ['acceptSessions', 'yes', /^acceptSessions is "yes"\. Give true or false/],
  ['sessionTtl', '3 weeks', /^sessionTtl is "3 weeks"\. Give a time/],
]

const walletFaults: [string, unknown, RegExp][] = [
  ...clientFaults.filter(([name]) => name !== 'session'),
  ...routeFaults,
  ['walletId', none, /^walletId is missing\. .*byw_/],
  ['walletId', '0x1111111111111111111111111111111111111111', /^walletId is "0x1111/],
  ['otherWalletIds', 'byw_2', /^otherWalletIds is "byw_2"\. List/],
  ['otherWalletIds', ['mine'], /^otherWalletIds is "mine"/],
  ['signOffers', 1, /^signOffers is 1\./],
  ['publicURL', 'https://api.example.com', /^publicURL is .*There is no such option\. Use .*publicUrl/],
  ['publicUrl', 'api.example.com', /^publicUrl is "api\.example\.com"\./],
  ['challengeBatch', 0, /^challengeBatch is 0\./],
  ['replayTtlMs', 'x', /^replayTtlMs is "x"\./],
  ['registry', 'off', /^registry is "off"\./],
  ['keptBytesMax', -1, /^keptBytesMax is -1\./],
  ['keptMsMax', 0.5, /^keptMsMax is 0\.5\./],
  ['abandonedRunsMax', 0, /^abandonedRunsMax is 0\./],
  ['onUndelivered', true, /^onUndelivered is true\./],
  ['onFault', 'log', /^onFault is "log"\./],
]

const payFaults: [string, unknown, RegExp][] = [
  ...routeFaults,
  ['price', none, /^price is missing\./],
  ['price', '$0.01', /^price is "\$0\.01"\. .*"0\.01", without a currency sign/],
  ['price', 0.01, /^price is 0\.01\. Give US dollars as text/],
  ['price', '-1', /^price is "-1"\./],
  ['currency', 'EUR', /^currency is "EUR"\. Prices are in USD/],
  ['clientIp', '1.2.3.4', /^clientIp is "1\.2\.3\.4"\. Give a function/],
  ['bindBody', true, /^bindBody is true\./],
]

const fetchFaults: [string, unknown, RegExp][] = [
  ['signer', none, /^signer is missing\. .*privateKeyToAccount/],
  ['signer', privateKey, /^signer is text \(not shown: it may be a private key\)\. .*privateKeyToAccount/],
  ['signer', { address: account.address }, /^signer\.signTypedData is missing\./],
  ['signer', { ...account, address: '0x1' }, /^signer\.address is "0x1"\./],
  ['limits', none, /^limits is missing\. .*perCall/],
  ['limits', {}, /^limits\.perCall is missing\. Give the most for one call, such as "0\.05"/],
  ['limits', { perDay: '5' }, /^limits\.perCall is missing\./],
  ['limits', { perCall: 0.05 }, /^limits\.perCall is 0\.05\. Give US dollars as text, such as "0\.05"/],
  ['limits', { perCall: '$1' }, /^limits\.perCall is "\$1"\./],
  ['limits', { perDay: 5 }, /^limits\.perDay is 5\./],
  ['limits', { perHostPerDay: '-1' }, /^limits\.perHostPerDay is "-1"\./],
  ['limits', { confirmAbove: '1' }, /^limits\.confirm is missing\. .*confirmAbove/],
  ['limits', { confirm: () => true }, /^limits\.confirmAbove is missing\./],
  ['limits', { confirm: 'ask', confirmAbove: '1' }, /^limits\.confirm is "ask"\./],
  ['limits', { perCall: '1', perday: '5' }, /^limits\.perday is "5"\. There is no such limit\. Use perCall, .*perDay/],
  ['limits', { hosts: 'api.test' }, /^limits\.hosts is "api\.test"\. List hosts/],
  ['limits', { networks: ['ethereum-classic'] }, /^limits\.networks is "ethereum-classic"\. Use one of .*base/],
  ['prefer', ['cheap'], /^prefer is "cheap"\./],
  ['prefer', 'x402', /^prefer is "x402"\. List/],
  ['ledger', {}, /^ledger\.reserve is missing\./],
  ['tokens', {}, /^tokens is \{\}\./],
  ['onPayment', 1, /^onPayment is 1\./],
  ['onPaid', () => none, /^onPaid is a function\. There is no such option\. Use .*onPayment/],
  ['onFault', 1, /^onFault is 1\./],
  ['sessions', 'no', /^sessions is "no"\./],
  ['allowInsecure', 1, /^allowInsecure is 1\./],
  ['fetch', 1, /^fetch is 1\./],
  ['now', 1, /^now is 1\./],
  ['random', 1, /^random is 1\./],
]

const managedFaults: [string, unknown, RegExp][] = [
  ['wallet', none, /^wallet is missing\./],
  ['wallet', { ...managed.wallet, id: 'byw_1' }, /^wallet\.id is "byw_1"\. .*mwt_/],
  ['wallet', { id: 'mwt_1' }, /^wallet\.wallets is missing\. .*purser\.wallets/],
  ['wallet', { ...managed.wallet, approvedPaymentId: 'x' }, /^wallet\.approvedPaymentId is "x"\./],
  ['limits', none, /^limits is missing\./],
  ['limits', {}, /^limits\.perCall is missing\./],
  ['limits', { perCall: 0.05 }, /^limits\.perCall is 0\.05\./],
  ['limits', { perCall: '1', perDay: '5' }, /^limits\.perDay is "5"\. With a managed wallet, .*policy/],
  [
    'limits',
    { perCall: '1', confirm: () => true, confirmAbove: '1' },
    /^limits\.confirm is a function\. With a managed/,
  ],
  ['limits', { perCall: '1', percall: '5' }, /^limits\.percall is "5"\. There is no such limit/],
  ['signer', account, /^signer is given together with wallet\./],
  ['ledger', memoryLedger(), /^ledger is given together with wallet\. .*policy/],
  ['prefer', 'base', /^prefer is "base"\. Give "x402" or "mpp"/],
]

const ledgerFaults: [string, unknown, RegExp][] = [
  ['database', none, /^database is missing\./],
  ['database', { connect: 1 }, /^database\.query is missing\. Give a pool of pg/],
  ['budget', none, /^budget is missing\. Give a name/],
  ['budget', '', /^budget is ""\./],
  ['pool', {}, /^pool is \{\}\. There is no such option\. Use database, budget/],
]

const makers: [string, Made, Options, [string, unknown, RegExp][]][] = [
  ['createPurser', createPurser, client, clientFaults],
  ["express's walletMiddleware", expressWallet, wallet, walletFaults],
  ["hono's walletMiddleware", honoWallet, wallet, walletFaults],
  ["express's payMiddleware", payMiddleware, { price: '0.01' }, payFaults],
  ["hono's payMiddleware", honoPay, { price: '0.01' }, payFaults],
  ["fastify's payHook", payHook, { price: '0.01' }, payFaults],
  ['createPayingFetch', createPayingFetch, pay, fetchFaults],
  ['createPayingFetch from a wallet', createPayingFetch, managed, managedFaults],
  ['postgresLedger', postgresLedger, { database: { query: () => none }, budget: 'agent' }, ledgerFaults],
]

const rows = makers.flatMap(([name, make, good, faults]) =>
  faults.map(([option, value, message]) => ({ name, option, value, make, good, message })),
)

test.each(rows)('$name refuses $option $value by name, value and remedy', ({ make, good, option, value, message }) => {
  expect(() => make({ ...good, [option]: value } as never)).toThrow(message)
  expect(() => make({ ...good, [option]: value } as never)).toThrow(TypeError)
})

test.each(makers)('%s refuses to be called without options, and takes good ones', (_name, make, good) => {
  expect(() => make(undefined as never)).toThrow(/^The first argument is missing\. Give an object/)
  expect(() => make(good as never)).not.toThrow()
})

test.each(walletFaults)(
  "fastify's walletPlugin refuses %s %j when it is registered",
  async (option, value, message) => {
    const app = { addHook: () => app } as never
    await expect(walletPlugin(app, { ...wallet, [option]: value } as never)).rejects.toThrow(message)
  },
)

test.each([...walletFaults, ...payFaults])(
  'next refuses %s %j at the first request',
  async (option, value, message) => {
    const options = { ...wallet, price: '0.01', [option]: value } as never
    const handler = withPayment(options, () => new Response())
    await expect(handler(new Request('http://shop.test/'), {})).rejects.toThrow(message)
  },
)

const purser = createPurser({ ...client, fetch: () => Promise.reject(new Error('nothing was to be sent')) })
const calls: [string, (options: never) => unknown, RegExp][] = [
  [
    'an option of a call',
    () => purser.payments.get('pay_1', { timeout: 5 } as never),
    /^timeout is 5\. There is no such/,
  ],
  [
    'an Idempotency-Key',
    () => purser.test.payments.create({ walletId: 'byw_1' }, { idempotencykey: 'a' } as never),
    /^idempotencykey is "a"\. .* Use idempotencyKey/,
  ],
  ['an option of a list', () => purser.events.list({}, { timeout: 5 } as never).page(), /^timeout is 5\./],
  ['an option of a file', () => purser.vaults.files.add('vlt_1', new Blob(), { filename: 'a' } as never), /^filename/],
  ['a bound', () => purser.events.list().toArray({ limits: 5 } as never), /^limits is 5\. .*Use limit\./],
  ['no bound', () => purser.events.list().toArray({} as never), /^limit is missing\./],
  [
    'no argument of toArray',
    () => purser.events.list().toArray(undefined as never),
    /^The argument of toArray is missing/,
  ],
  [
    'the content of a proof',
    () => verifyItem({}, { keys: { keys: [] }, contents: new Blob() } as never),
    /^contents is/,
  ],
  [
    'an option of fetchKeys',
    () => fetchKeys('https://pay.example.com', { timeout: 5 } as never),
    /^timeout is 5\. There is no such option\. Use fetch, signal, timeoutMs/,
  ],
  [
    'a timeout of fetchKeys',
    () => fetchKeys('https://pay.example.com', { timeoutMs: '5s' } as never),
    /^timeoutMs is "5s"\. Give a whole number/,
  ],
  [
    'a signal of fetchKeys',
    () => fetchKeys('https://pay.example.com', { signal: new AbortController() } as never),
    /^signal is \{\}\. Give an AbortSignal/,
  ],
  [
    'an address of fetchKeys without encryption',
    () => fetchKeys('http://pay.example.com'),
    /^baseUrl is "http:\/\/pay\.example\.com"\. .*https:/,
  ],
  ['no address of fetchKeys', () => fetchKeys(undefined as never), /^baseUrl is missing\. .*https:/],
  [
    'the options of a file ledger',
    () => fileLedger({ file: 'budget.jsonl' } as never),
    /^file is \{"file":"budget\.jsonl"\}\. Give the path of a file, such as/,
  ],
  ['no file of a ledger', () => fileLedger('' as never), /^file is ""\./],
  ['a tolerance', () => unwrap('{}', {}, 'whsec_', { tolerance: 5 } as never), /^tolerance is 5\. .*toleranceSeconds/],
  ['an id that is an object', () => purser.payments.get({ id: 'pay_1' } as never), /^The id in the path is \{"id"/],
  [
    'a place in a stream',
    () =>
      purser.vaults
        .events('vlt_1', { form: 'x' } as never)
        [Symbol.asyncIterator]()
        .next(),
    /^form/,
  ],
]

test.each(calls)('a call refuses %s that would have no effect', async (_what, call, message) => {
  const error = await Promise.resolve()
    .then(call as () => unknown)
    .catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(TypeError)
  expect(String(error)).toMatch(new RegExp(`TypeError: ${message.source.replace(/^\^/, '')}`))
})

const secrets = [
  privateKey,
  'svc_test_sk_0123456789secret',
  'svc_live_sk_0123456789secret',
  `whsec_${'c2VjcmV0'.repeat(6)}`,
]
const places: [string, (secret: string) => unknown][] = [
  ['signer', (secret) => createPayingFetch({ ...pay, signer: secret } as never)],
  ['signer in a list', (secret) => createPayingFetch({ ...pay, signer: [secret], limits: [secret] } as never)],
  ['walletId', (secret) => expressWallet({ ...wallet, walletId: secret })],
  ['baseUrl', (secret) => createPurser({ ...client, baseUrl: secret })],
  ['the options', (secret) => createPurser([secret] as never)],
]

test.each(places)('no message shows a secret that is given as %s', (_place, make) => {
  for (const secret of secrets) {
    const error = catchError(() => make(secret))
    expect(error).toBeInstanceOf(TypeError)
    expect(String(error)).not.toContain(secret.slice(-10))
  }
})

function catchError(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error
  }
}
