import { McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { z } from 'zod'

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const silence = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='

const textResult = (text: string) => ({ content: [{ type: 'text' as const, text }] })
const pause = () => new Promise((resolve) => setTimeout(resolve, 50))

/**
 * A server with the tools, resources and prompts that the official conformance package asks for by name. It is served
 * by the HTTP transport of purser-mcp.
 */
export function conformanceServer(): McpServer {
  const server = new McpServer(
    { name: 'purser-mcp-conformance', version: '0.1.0' },
    { capabilities: { logging: {}, completions: {}, resources: { subscribe: true } } },
  )
  addTools(server)
  addResources(server)
  addPrompts(server)
  server.server.setRequestHandler('completion/complete', () => ({ completion: { values: [], total: 0 } }))
  server.server.setRequestHandler('resources/subscribe', () => ({}))
  server.server.setRequestHandler('resources/unsubscribe', () => ({}))
  return server
}

function addTools(server: McpServer): void {
  const image = { type: 'image' as const, data: pixel, mimeType: 'image/png' }
  const resource = (uri: string, mimeType: string, text: string) => ({
    type: 'resource' as const,
    resource: { uri, mimeType, text },
  })
  server.registerTool('test_simple_text', { description: 'Text.' }, () =>
    textResult('This is a simple text response for testing.'),
  )
  server.registerTool('test_image_content', { description: 'An image.' }, () => ({ content: [image] }))
  server.registerTool('test_audio_content', { description: 'A sound.' }, () => ({
    content: [{ type: 'audio', data: silence, mimeType: 'audio/wav' }],
  }))
  server.registerTool('test_embedded_resource', { description: 'A resource.' }, () => ({
    content: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  }))
  server.registerTool('test_multiple_content_types', { description: 'Several contents.' }, () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  }))
  server.registerTool('test_error_handling', { description: 'A failure.' }, () => {
    throw new Error('This tool intentionally returns an error for testing')
  })
  server.registerTool('test_tool_with_logging', { description: 'Logs.' }, async (ctx) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await ctx.mcpReq.log('info', data)
      await pause()
    }
    return textResult('Done.')
  })
  server.registerTool('test_tool_with_progress', { description: 'Progress.' }, async (ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken
    for (const progress of [0, 50, 100]) {
      const params = progressToken === undefined ? undefined : { progressToken, progress, total: 100 }
      if (params !== undefined) await ctx.mcpReq.notify({ method: 'notifications/progress', params })
      await pause()
    }
    return textResult('Done.')
  })
  const address = z.object({ street: z.string().optional(), city: z.string().optional() }).meta({ id: 'address' })
  const inputSchema = z.strictObject({ name: z.string().optional(), address: address.optional() })
  server.registerTool('json_schema_2020_12_tool', { description: 'Any of two.', inputSchema }, () =>
    textResult('Done.'),
  )
}

function addResources(server: McpServer): void {
  const one = (uri: string, mimeType: string, content: { text: string } | { blob: string }) =>
    server.registerResource(uri.slice('test://'.length), uri, { mimeType }, () => ({
      contents: [{ uri, mimeType, ...content }],
    }))
  one('test://static-text', 'text/plain', { text: 'This is the content of the static text resource.' })
  one('test://static-binary', 'image/png', { blob: pixel })
  one('test://watched-resource', 'text/plain', { text: 'Watched.' })
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined })
  server.registerResource('template', template, { mimeType: 'application/json' }, ({ href }, { id }) => ({
    contents: [{ uri: href, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true }) }],
  }))
}

function addPrompts(server: McpServer): void {
  const user = 'user' as const
  const message = (words: string) => ({ role: user, content: { type: 'text' as const, text: words } })
  server.registerPrompt('test_simple_prompt', { description: 'A prompt.' }, () => ({
    messages: [message('This is a simple prompt for testing.')],
  }))
  const argsSchema = z.object({ arg1: z.string(), arg2: z.string() })
  server.registerPrompt('test_prompt_with_arguments', { description: 'Arguments.', argsSchema }, ({ arg1, arg2 }) => ({
    messages: [message(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  }))
  const embedding = { description: 'A resource.', argsSchema: z.object({ resourceUri: z.string() }) }
  server.registerPrompt('test_prompt_with_embedded_resource', embedding, ({ resourceUri: uri }) => ({
    messages: [
      { role: user, content: { type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'Embedded.' } } },
      message('Please process the embedded resource above.'),
    ],
  }))
  server.registerPrompt('test_prompt_with_image', { description: 'An image.' }, () => ({
    messages: [
      { role: user, content: { type: 'image', data: pixel, mimeType: 'image/png' } },
      message('Please analyze the image above.'),
    ],
  }))
}
