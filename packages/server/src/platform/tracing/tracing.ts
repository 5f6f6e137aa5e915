import { context, propagation, type TextMapPropagator, trace } from '@opentelemetry/api'
import type { Sampler, SpanProcessor } from '@opentelemetry/sdk-trace'

type Env = Readonly<Record<string, string | undefined>>

export interface Tracing {
  /** Exports what is left. Waits at most five seconds for a collector that does not respond. */
  stop(): Promise<void>
}

const stopMsMax = 5_000

/**
 * Exports traces by OTLP over HTTP if the environment names a collector (`OTEL_EXPORTER_OTLP_ENDPOINT` or
 * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`), and does nothing otherwise: the SDK is loaded only then. The exporter reads its other settings
 * itself. Call it before the service starts.
 * Source: OpenTelemetry specification, environment variables of the SDK and of the OTLP exporter.
 *
 * @example
 * const tracing = await startTracing({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' })
 * // …
 * await tracing?.stop()
 */
export async function startTracing(env: Env): Promise<Tracing | undefined> {
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? env.OTEL_EXPORTER_OTLP_ENDPOINT ?? ''
  if (endpoint === '' || env.OTEL_SDK_DISABLED === 'true') return undefined
  const [sdk, resources, core, managers, { OTLPTraceExporter }, { withoutIdleRuns }] = await Promise.all([
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/core'),
    import('@opentelemetry/context-async-hooks'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('./idle-runs.ts'),
  ])
  const named = resources.resourceFromAttributes({ 'service.name': env.OTEL_SERVICE_NAME ?? 'purser' })
  const detected = resources.detectResources({ detectors: [resources.resourceAttributesEnvDetector] })
  const processors: SpanProcessor[] = [
    withoutIdleRuns(new sdk.BatchSpanProcessor({ exporter: new OTLPTraceExporter() })),
  ]
  const provider = new sdk.TracerProvider({
    resource: detected.merge(named),
    sampler: samplerOf(sdk, env),
    spanProcessors: processors,
    spanLimits: { attributeValueLengthLimit: 4_096 },
  })
  context.setGlobalContextManager(new managers.AsyncLocalStorageContextManager().enable())
  const traceContext = new core.W3CTraceContextPropagator()
  propagation.setGlobalPropagator(trustsCallers(env) ? traceContext : withoutCallers(traceContext))
  trace.setGlobalTracerProvider(provider)
  return {
    async stop() {
      const { promise: late, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, stopMsMax)
      await Promise.race([provider.shutdown().catch(() => undefined), late])
      clearTimeout(timer)
    },
  }
}

/**
 * `OTEL_TRUST_CALLERS`: whether requests continue the traces of their callers; false by default. The headers of a request are read before any
 * credential, so a trusted caller decides whether the request is recorded, whatever ratio the operator set.
 */
function trustsCallers({ OTEL_TRUST_CALLERS: value = '' }: Env): boolean {
  if (!['', 'true', 'false'].includes(value)) throw new Error('OTEL_TRUST_CALLERS is neither true nor false')
  return value === 'true'
}

/** Passes traces on, and continues none. */
function withoutCallers(propagator: TextMapPropagator): TextMapPropagator {
  return {
    inject: (from, carrier, setter) => propagator.inject(from, carrier, setter),
    extract: (from) => from,
    fields: () => propagator.fields(),
  }
}

/** By `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`; every trace by default. An unknown name is refused. */
function samplerOf(sdk: typeof import('@opentelemetry/sdk-trace'), env: Env): Sampler {
  const name = env.OTEL_TRACES_SAMPLER ?? 'parentbased_always_on'
  const ratio = Number(env.OTEL_TRACES_SAMPLER_ARG ?? '1')
  if (!(ratio >= 0 && ratio <= 1)) throw new Error('OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1')
  const roots: Readonly<Record<string, () => Sampler>> = {
    always_on: () => new sdk.AlwaysOnSampler(),
    always_off: () => new sdk.AlwaysOffSampler(),
    traceidratio: () => new sdk.TraceIdRatioBasedSampler(ratio),
  }
  const root = roots[name.replace(/^parentbased_/, '')]
  if (root === undefined)
    throw new Error(
      `OTEL_TRACES_SAMPLER names no known sampler: use one of ${Object.keys(roots).join(', ')}, each also with parentbased_ before it`,
    )
  return name.startsWith('parentbased_') ? new sdk.ParentBasedSampler({ root: root() }) : root()
}
