import { declareDiscoveryExtension, extractDiscoveryInfo } from '@x402/extensions/bazaar'
import { expect, test } from 'vitest'
import { readDeclaration } from '../../server/src/features/payments/facilitator/paid-resource.ts'

const requirementsV2 = {
  scheme: 'exact',
  network: 'eip155:84532',
  amount: '10000',
  asset: '0x1',
  payTo: '0x2',
  maxTimeoutSeconds: 60,
}
const payload = { signature: '0x', authorization: {} }

function v2(url: string, bazaar: unknown, about: Readonly<Record<string, unknown>> = {}) {
  const resource = { url, description: 'Weather', mimeType: 'text/plain', ...about }
  const paymentPayload = { x402Version: 2, accepted: requirementsV2, payload, resource, extensions: { bazaar } }
  return { x402Version: 2, paymentPayload, paymentRequirements: requirementsV2 }
}

function v1(outputSchema: Readonly<Record<string, unknown>>) {
  const { amount, ...rest } = requirementsV2
  const paymentRequirements = {
    ...rest,
    network: 'base-sepolia',
    maxAmountRequired: amount,
    resource: 'https://api.example.com/weather?city=Lima',
    description: 'Weather',
    mimeType: 'text/plain',
    outputSchema,
  }
  return {
    x402Version: 1,
    paymentPayload: { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload },
    paymentRequirements,
  }
}

/** A declaration as the official server's extension completes it: with the method of the route. */
function ofRoute(method: string) {
  const { bazaar } = declareDiscoveryExtension({ input: { city: 'Lima' }, inputSchema: { properties: { city: {} } } })
  const declared = JSON.parse(JSON.stringify(bazaar))
  declared.info.input.method = method
  return declared
}

const tool = {
  info: { input: { type: 'mcp', toolName: 'forecast', inputSchema: { type: 'object' }, transport: 'sse' } },
  schema: { type: 'object' },
}

test('a listing shows what the official facilitator reads from the declaration', () => {
  const url = 'https://api.example.com/users/7?token=secret#top'
  const bodies = [
    v2(url, ofRoute('GET')),
    v2(url, { ...ofRoute('GET'), routeTemplate: '/users/:id' }),
    v2(url, { ...ofRoute('GET'), routeTemplate: '/users/../admin' }),
    v2(url, { ...ofRoute('GET'), routeTemplate: 'https://elsewhere.example' }),
    v2('https://mcp.example.com/tools', tool),
    v2(url, ofRoute('GET'), {
      serviceName: 'Weather',
      tags: ['sky', 'rain'],
      iconUrl: 'https://cdn.example.com/i.png',
    }),
    v2(url, ofRoute('GET'), { serviceName: 'x'.repeat(33), tags: ['ü'], iconUrl: 'http://localhost/i.png' }),
    v2(url, ofRoute('GET'), { iconUrl: 'http://2130706433/i.png' }),
    v2(url, ofRoute('GET'), { iconUrl: 'http://[::1]/i.png' }),
    v2(url, ofRoute('GET'), { iconUrl: 'https://user:word@cdn.example.com/i.png' }),
    v1({ input: { type: 'http', method: 'GET', queryParams: { city: 'x' } } }),
    v1({ input: { type: 'http', method: 'post', bodyType: 'json', bodyFields: {} }, output: { ok: true } }),
  ]
  for (const body of bodies) {
    const theirs = extractDiscoveryInfo(
      JSON.parse(JSON.stringify(body.paymentPayload)),
      JSON.parse(JSON.stringify(body.paymentRequirements)),
    )
    const ours = readDeclaration(body)
    if (theirs === null || ours === undefined || 'rejectedReason' in ours) throw new Error(JSON.stringify(body))
    const { resourceUrl, x402Version, description, mimeType, serviceName, tags, iconUrl } = theirs
    const { extensions: _, ...details } = ours.details
    expect([ours.resource, ours.type, ours.x402Version, details]).toEqual([
      resourceUrl,
      theirs.discoveryInfo.input.type,
      x402Version,
      JSON.parse(JSON.stringify({ description, mimeType, serviceName, tags, iconUrl })),
    ])
    expect(ours.operation).toBe('toolName' in theirs ? theirs.toolName : theirs.method)
  }
})

test('a tool is listed under the name that the specification has, as under that of the official packages', () => {
  const { toolName, ...input } = tool.info.input
  const declared = [tool, { ...tool, info: { input: { ...input, tool: toolName } } }]
  for (const one of declared)
    expect(readDeclaration(v2('https://mcp.example.com/tools', one))).toMatchObject({
      type: 'mcp',
      operation: 'forecast',
    })
})

test('a payment without a declaration is not listed, and an invalid declaration is answered with the reason', () => {
  const cases = [
    [{ ...v2('https://a.example/b', null) }, undefined],
    [v1({}), undefined],
    [v1({ input: { type: 'http', method: 'GET', discoverable: false } }), undefined],
    [v2('https://a.example/b', {}), { rejectedReason: 'invalid_discovery_info' }],
    [
      v2('https://a.example/b', { info: { input: { type: 'http', method: 'BREW' } } }),
      { rejectedReason: 'invalid_discovery_info' },
    ],
    [
      v2('https://a.example/b', { info: { input: { type: 'mcp', toolName: '' } } }),
      { rejectedReason: 'invalid_discovery_info' },
    ],
    [
      v2('https://a.example/b', { info: { input: { type: 'mcp', inputSchema: {} } } }),
      { rejectedReason: 'invalid_discovery_info' },
    ],
    [v2('javascript:alert(1)', ofRoute('GET')), { rejectedReason: 'invalid_resource_url' }],
    [v2('not an address', ofRoute('GET')), { rejectedReason: 'invalid_resource_url' }],
    [
      v2('https://a.example/b', { ...ofRoute('GET'), more: 'x'.repeat(16_384) }),
      { rejectedReason: 'declaration_too_large' },
    ],
  ] as const
  for (const [body, reported] of cases) expect(readDeclaration(body)).toEqual(reported)
})
