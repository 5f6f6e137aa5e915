import type { Context } from '@opentelemetry/api'
import { SpanStatusCode } from '@opentelemetry/api'
import type { ReadableSpan, Span, SpanProcessor } from '@opentelemetry/sdk-trace'
import { loopAttribute, rowsChangedAttribute } from './spans.ts'

/** Spans of one run that are kept until the run changes something or ends; a longer run is exported as it goes. */
const spansMax = 500

/**
 * Leaves out the runs of loops that changed nothing: most runs find nothing to do, and they would hide the others. The spans of a run are kept
 * until a statement of it has changed a row or has failed.
 */
export function withoutIdleRuns(next: SpanProcessor): SpanProcessor {
  /** By trace id. */
  const runs = new Map<string, ReadableSpan[]>()
  return {
    onStart(span: Span, parent: Context) {
      if (span.attributes[loopAttribute] !== undefined) runs.set(span.spanContext().traceId, [])
      next.onStart(span, parent)
    },
    onEnd(span) {
      const { traceId } = span.spanContext()
      const kept = runs.get(traceId)
      if (kept === undefined) return next.onEnd(span)
      kept.push(span)
      const isLast = span.attributes[loopAttribute] !== undefined
      if (isWork(span) || kept.length > spansMax) {
        runs.delete(traceId)
        for (const one of kept) next.onEnd(one)
      } else if (isLast) runs.delete(traceId)
    },
    forceFlush: () => next.forceFlush(),
    shutdown: () => next.shutdown(),
  }
}

function isWork({ attributes, status }: ReadableSpan): boolean {
  return attributes[rowsChangedAttribute] !== undefined || status.code === SpanStatusCode.ERROR
}
