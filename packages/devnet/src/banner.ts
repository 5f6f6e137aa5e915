import type { Dev } from './dev.ts'

/** The first lines after `npm start`: the address, the key and a command to try. */
export function banner(
  dev: Dev,
  { portRequested, dataDir }: { readonly portRequested: number; readonly dataDir: string },
): string {
  const taken = portRequested !== 0 && dev.server.port !== portRequested
  const facts = [
    ['Dashboard', `${dev.signInUrl} (press Sign in; works once, within ten minutes)`],
    ['API', dev.baseUrl],
    ['Docs', `${dev.baseUrl}/docs`],
    ['API key', dev.apiKey],
    ['Wallet', `${dev.walletId} (USDC on base-sepolia)`],
    ['Payer', payerLine(dev, dataDir)],
    ...Object.entries(dev.chains).map(([name, { chainId, rpcUrl }]) => ['Chain', `${name} (${chainId}) at ${rpcUrl}`]),
    ['Data', `${dataDir} (its dev.env has the address and the keys as variables)`],
  ]
  return [
    ...(taken ? [`Port ${portRequested} is taken, so this is port ${dev.server.port}.`] : []),
    'Purser is running.',
    '',
    ...facts.map(([name = '', value = '']) => `  ${name.padEnd(9)} ${value}`),
    '',
    'Try it:',
    '',
    exampleCall(dev),
    '',
    'See its event come in, in another terminal (--forward-to brings it to a server of yours, signed):',
    '',
    `  PURSER_BASE_URL=${dev.baseUrl} PURSER_API_KEY=${dev.apiKey} npx purser listen`,
    '',
    'Ctrl-C stops everything; starting again finds the same data.',
  ].join('\n')
}

function payerLine({ payer, chains }: Dev, dataDir: string): string {
  const funds = Object.keys(chains).length === 0 ? 'no chain runs (CHAINS=off)' : 'test money on every chain'
  return `${payer.address} (${funds}; its key is in ${dataDir}/dev.json)`
}

/**
 * Returns the curl command that verifies a stub payment, as a provider's server does when a request with a payment
 * arrives.
 */
function exampleCall({ baseUrl, apiKey, walletId }: Dev): string {
  const body = {
    protocol: 'x402',
    credential: 'stub_payment_accepted',
    price: '0.01',
    walletId,
    resource: 'https://api.example.com/forecast',
    method: 'GET',
  }
  return [
    `  curl -s ${baseUrl}/payments/verify \\`,
    `    -H 'Authorization: Bearer ${apiKey}' \\`,
    `    -H 'Content-Type: application/json' \\`,
    `    -d '${JSON.stringify(body)}'`,
  ].join('\n')
}
