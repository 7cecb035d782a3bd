/** What a person writes into the fields of the set-up. */

import { describe, expect, it } from "vitest";

import { linesOf, namedTexts, pairsOf, toolsOf, toolsText } from "../src/setup/lines";

describe("lines", () => {
  it("are arguments as they stand, also with spaces in them", () => {
    expect(linesOf("-c\r\nprint('a b')\n\n--x=1\n")).toEqual(["-c", "print('a b')", "--x=1"]);
  });

  it("are variables, whose values may have = in them, and headers", () => {
    expect(pairsOf("A=b=c\nB= d", "=")).toEqual({ A: "b=c", B: " d" });
    expect(pairsOf("X-Key: a:b", ":")).toEqual({ "X-Key": "a:b" });
  });

  it("are names for texts, in any script", () => {
    expect(namedTexts("Frau B=Berta Meier\n名=文")).toEqual({ "Frau B": "Berta Meier", 名: "文" });
  });

  it.each([[null], [[]], [["files", "basics.todo"]]])("tell all tools from none, and stay what they were: %j", (tools) => {
    expect(toolsOf(toolsText(tools))).toEqual(tools);
  });

  it.each(["novalue", "=x", "a b=c"])("that cannot be read are named: %s", (line) => {
    expect(() => pairsOf(line, "=")).toThrow(line);
  });

  it.each(["novalue", "=x", "a="])("that name no text are refused: %s", (line) => {
    expect(() => namedTexts(line)).toThrow(line);
  });
});
