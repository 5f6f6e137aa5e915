export type { PayingToolsOptions, ToolOptions } from './options.ts'
export type { AgentTool, ExecuteOptions, ToolArgument, ToolInputSchema } from './tool.ts'
export { createPayingTools } from './tools.ts'
