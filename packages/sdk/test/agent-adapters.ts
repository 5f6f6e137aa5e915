/** The adapters of docs/agents.md, and a scripted model of each framework that calls the tools. */
import { AIMessageChunk } from '@langchain/core/messages'
import { tool as langchainTool } from '@langchain/core/tools'
import { FakeStreamingChatModel } from '@langchain/core/utils/testing'
import { Agent, tool as agentsTool, type Model, Runner, Usage } from '@openai/agents-core'
import { tool as aiTool, generateText, isStepCount, jsonSchema } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'
import type { AgentTool } from '../src/agents/index.ts'

/** The call of a tool that the scripted model makes. */
export interface ScriptedCall {
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** Lets the model of a framework make one call. Returns what the model then gets as the result. */
export type Framework = (tools: readonly AgentTool[], call: ScriptedCall) => Promise<string>

// docs/agents.md: AI SDK
export function aiSdkTools(tools: readonly AgentTool[]) {
  return Object.fromEntries(
    tools.map(({ name, description, inputSchema, execute }) => [
      name,
      aiTool({
        description,
        inputSchema: jsonSchema(inputSchema),
        execute: (input: unknown, { abortSignal }) => execute(input, { signal: abortSignal }),
      }),
    ]),
  )
}
// end

// docs/agents.md: OpenAI Agents
export function openAiAgentsTools(tools: readonly AgentTool[]) {
  return tools.map(({ name, description, inputSchema, execute }) =>
    agentsTool({
      name,
      description,
      parameters: inputSchema,
      strict: false,
      execute: (input: unknown, _context, details) => execute(input, { signal: details?.signal }),
    }),
  )
}
// end

// docs/agents.md: LangChain
export function langchainTools(tools: readonly AgentTool[]) {
  return tools.map(({ name, description, inputSchema, execute }) =>
    langchainTool((input: unknown, { signal }: { signal?: AbortSignal }) => execute(input, { signal }), {
      name,
      description,
      schema: inputSchema,
    }),
  )
}
// end

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

const ToolMessages = z.array(z.looseObject({ role: z.string(), content: z.unknown() }))
const ToolResult = z.tuple([z.looseObject({ output: z.object({ type: z.literal('text'), value: z.string() }) })])

const aiSdk: Framework = async (tools, { name, arguments: input }) => {
  const results: string[] = []
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const last = ToolMessages.parse(prompt).at(-1)
      if (last?.role !== 'tool') {
        const call = { type: 'tool-call', toolCallId: 'call-1', toolName: name, input: JSON.stringify(input) } as const
        return { content: [call], finishReason: { unified: 'tool-calls', raw: undefined }, usage, warnings: [] }
      }
      results.push(ToolResult.parse(last.content)[0].output.value)
      const text = { type: 'text', text: 'done' } as const
      return { content: [text], finishReason: { unified: 'stop', raw: undefined }, usage, warnings: [] }
    },
  })
  await generateText({ model, tools: aiSdkTools(tools), stopWhen: isStepCount(3), prompt: 'Buy it' })
  return results.join()
}

const CallResult = z.looseObject({
  type: z.literal('function_call_result'),
  output: z.object({ type: z.literal('text'), text: z.string() }),
})

const openAiAgents: Framework = async (tools, { name, arguments: input }) => {
  const results: string[] = []
  const model: Model = {
    getResponse: async ({ input: items }) => {
      const result = CallResult.safeParse(items.at(-1))
      if (result.success) {
        results.push(result.data.output.text)
        const content = [{ type: 'output_text' as const, text: 'done' }]
        return {
          usage: new Usage(),
          output: [{ type: 'message', role: 'assistant', status: 'completed', content }],
        }
      }
      const call = { type: 'function_call', callId: 'call-1', name, status: 'completed' } as const
      return { usage: new Usage(), output: [{ ...call, arguments: JSON.stringify(input) }] }
    },
    getStreamedResponse: () => {
      throw new Error('the test does not stream')
    },
  }
  const agent = new Agent({ name: 'Buyer', model, tools: openAiAgentsTools(tools) })
  await new Runner({ tracingDisabled: true }).run(agent, 'Buy it')
  return results.join()
}

const langchain: Framework = async (tools, { name, arguments: args }) => {
  const adapted = langchainTools(tools)
  const responses = [new AIMessageChunk({ content: '', tool_calls: [{ id: 'call-1', name, args, type: 'tool_call' }] })]
  const message = await new FakeStreamingChatModel({ chunks: responses }).bindTools(adapted).invoke('Buy it')
  const calls = z.array(z.looseObject({ name: z.string() })).parse(message.tool_calls)
  const results = calls.map(async (call) => {
    const chosen = adapted.find((one) => one.name === call.name)
    const result: unknown = await chosen?.invoke({ ...call, type: 'tool_call', args, id: 'call-1' })
    return z.looseObject({ content: z.string() }).parse(result).content
  })
  return (await Promise.all(results)).join()
}

/** The frameworks by name. */
export const frameworks: readonly (readonly [string, Framework])[] = [
  ['AI SDK', aiSdk],
  ['OpenAI Agents', openAiAgents],
  ['LangChain', langchain],
]
