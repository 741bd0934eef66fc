// Shapes of packets, the second channel beside color: on a canvas, and in a legend the same.

/** Corners around (0, 0), about as large as a circle of radius 1; a circle has none. */
export type Shape = readonly (readonly [number, number])[];

const CIRCLE: Shape = [];
const SQUARE: Shape = [
  [-0.95, -0.95],
  [0.95, -0.95],
  [0.95, 0.95],
  [-0.95, 0.95],
];
const TRIANGLE: Shape = [
  [0, -1.2],
  [1.1, 1],
  [-1.1, 1],
];
/** Also of marks, as an outline. */
export const DIAMOND: Shape = [
  [0, -1.35],
  [1.35, 0],
  [0, 1.35],
  [-1.35, 0],
];
const POINTER: Shape = [
  [1.3, 0],
  [-0.9, 1.15],
  [-0.9, -1.15],
];

/** Of classes, in their order. */
const OF_CLASSES = [CIRCLE, SQUARE, TRIANGLE, DIAMOND, POINTER];

export function classShape(at: number): Shape {
  return OF_CLASSES[at % OF_CLASSES.length] ?? CIRCLE;
}

/** Of drop precedences: green, yellow, red. */
export const PRECEDENCE_SHAPES: readonly Shape[] = [CIRCLE, TRIANGLE, SQUARE];

/** Adds a shape to the path. */
export function trace(context: CanvasRenderingContext2D, shape: Shape, x: number, y: number, size: number): void {
  if (shape.length === 0) {
    context.moveTo(x + size, y);
    context.arc(x, y, size, 0, 2 * Math.PI);
    return;
  }
  shape.forEach(([dx, dy], i) => {
    if (i === 0) context.moveTo(x + dx * size, y + dy * size);
    else context.lineTo(x + dx * size, y + dy * size);
  });
  context.closePath();
}

/** The points of an SVG polygon. */
export function polygon(shape: Shape, x: number, y: number, size: number): string {
  return shape.map(([dx, dy]) => `${x + dx * size},${y + dy * size}`).join(" ");
}
