import { createRootRoute, createRoute } from '@tanstack/react-router'
import { PageFailed, PageNotFound } from './page-failures.tsx'
import { Shell } from './shell.tsx'

export const rootRoute = createRootRoute({ notFoundComponent: PageNotFound })

/** Parent of every page: navigation, test environment bar and palette. They stay when a page fails. */
export const shellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'shell',
  component: Shell,
  errorComponent: PageFailed,
  notFoundComponent: PageNotFound,
})
